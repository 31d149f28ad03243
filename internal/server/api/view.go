package api

import (
	"context"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/wire"
)

// RawInput asks for texts as they are stored.
type RawInput struct {
	Raw bool `query:"raw" doc:"Show secrets instead of [delaytask-redacted]; takes the verb bodies"`
}

// output is an answer that is its body alone.
type output[Body any] struct{ Body Body }

// outputOf is an answer with the body, unless there is an error.
func outputOf[Body any](a *API, body Body, err error) (*output[Body], error) {
	return &output[Body]{body}, a.problem(err)
}

// by is the caller of a request.
func by(ctx context.Context) operate.By { return operate.By{Caller: access.From(ctx), Via: audit.API} }

// view is what the caller may see.
func (a *API) view(ctx context.Context, in RawInput) *operate.View {
	return a.operator.View(by(ctx)).Raw(in.Raw)
}

func taskOf(t *operate.Task) wire.Task {
	shown := wire.FromTask(&t.TaskRow)
	shown.Redacted = t.Redacted
	return shown
}

func scheduleOf(s *operate.Schedule) wire.Schedule {
	shown := wire.FromSchedule(&s.Schedule)
	shown.Redacted = s.Redacted
	return shown
}
