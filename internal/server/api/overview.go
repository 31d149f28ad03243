package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

type overviewOutput struct{ Body wire.Overview }

func (a *API) overviewOperation() {
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/overview", "overview",
		"Tell what needs attention now, and how every tag stands",
		"The service reads at most every 5 s, and not unless it is asked: any number of callers costs the database "+
			"what one does. While the database is away the last reading is shown, with its age and why. The answer "+
			"has the tags that the token may observe, errors where it may also read, and locks and stacks if it may "+
			"observe all tags.",
		groupOperate), a.overview)
}

func (a *API) overview(ctx context.Context, _ *struct{}) (*overviewOutput, error) {
	if err := allow(ctx, access.Observe, ""); err != nil {
		return nil, a.problem(err)
	}
	caller := access.From(ctx)
	filter := report.OverviewFilter{
		Errors: func(tag string) bool { return caller.May(access.Read, tag) },
	}
	if !caller.AnyTag(access.Observe) {
		filter.Sees = func(tag string) bool { return caller.May(access.Observe, tag) }
	}
	found, err := a.scheduler.OverviewFor(ctx, filter)
	if err != nil {
		return nil, a.problem(err)
	}
	return &overviewOutput{wire.FromOverview(operate.RedactedOverview(a.redactor, &found))}, nil
}
