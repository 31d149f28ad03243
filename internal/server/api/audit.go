package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

type auditInput struct {
	Who    string `query:"who" doc:"Only entries of this access token, or of this user@host of the command"`
	Action string `query:"action" doc:"Only this action, such as task.cancel"`
	Tag    string `query:"tag" doc:"Only entries of this tag"`
	Before string `query:"before" doc:"next of the page before"`
	Limit  int    `query:"limit" doc:"Entries in a page; default 100, at most 1,000"`
}

func (a *API) auditOperation() {
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/audit", "listAudit", "List what people have changed",
		"The newest first. A page ends, and says stopped, after it has looked at 10,000 entries. An outcome is "+
			"lost when the process of a bulk change was not seen at it for 30 s. It is empty while the change is "+
			"under way, or when its process died. It needs the verb audit. Entries of other tags are left out, and "+
			"for a token of some tags those that are about no single tag.", groupOperate), a.listAudit)
}

func (a *API) listAudit(ctx context.Context, in *auditInput) (*output[wire.AuditPage], error) {
	f := report.AuditFilter{Who: in.Who, Action: in.Action, Tag: in.Tag, Limit: in.Limit}
	if in.Before != "" {
		before, err := wire.ParseID(in.Before)
		if err != nil {
			return nil, invalidID(err)
		}
		f.Before = int64(before)
	}
	page, err := a.view(ctx, RawInput{}).Entries(ctx, f)
	return outputOf(a, wire.FromAuditPage(&page), err)
}
