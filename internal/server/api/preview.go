package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

type previewInput struct{ Body wire.Preview }

// previewed is how many ticks a preview has by default.
const previewed = 20

const previewPath = "/v1/schedules/preview"

func (a *API) previewOperation() {
	huma.Register(a.spec, a.operation(http.MethodPost, previewPath, "previewSchedule",
		"Tell when a schedule would run", "Lines are cron lines of 5 or 6 fields, @every 90m, @every 24h/2h or "+
			"@at 2027-01-01T09:00; with ! before it, a date or a cron line is left out. It stores and reads nothing. "+
			"Every access token may call it. 400 invalid_spec has the line and the column in errors.",
		groupSchedules), a.preview)
}

// preview asks for no right: the answer depends on the request and the clock alone.
func (a *API) preview(_ context.Context, in *previewInput) (*output[wire.Ticks], error) {
	after := a.scheduler.Now()
	if in.Body.After != nil {
		after = in.Body.After.Std()
	}
	spec := &in.Body.Spec
	ticks, warnings, err := scheduler.Preview(spec.To(), after, cmp.Or(in.Body.Count, previewed))
	return outputOf(a, wire.FromTicks(ticks, warnings), err)
}
