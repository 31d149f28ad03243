package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/wire"
)

func (a *API) overviewOperation() {
	huma.Register(a.spec, a.perTag(a.operation(http.MethodGet, "/v1/overview", "overview",
		"Tell what needs attention now, and how every tag stands",
		"The service reads at most every 5 s, and not unless it is asked: any number of callers costs the database "+
			"what one does. While the database is away the last reading is shown, with its age and why. The answer "+
			"has the tags that the token may observe, errors where it may also read, and locks and stacks if it may "+
			"observe all tags. It lists the tags that have been overdue for longest, and the most urgent findings: so "+
			"many of each as limit says.",
		groupOperate)), a.overview)
}

func (a *API) overview(ctx context.Context, in *TagLimit) (*output[wire.Overview], error) {
	most, err := in.most()
	if err != nil {
		return nil, a.problem(err)
	}
	return inRoom(ctx, a, int64(most)*tagRoom, func() (wire.Overview, error) {
		found, err := a.view(ctx, RawInput{}).Overview(ctx, most, most)
		return wire.FromOverview(&found), err
	})
}
