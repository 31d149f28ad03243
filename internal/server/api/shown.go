package api

import (
	"context"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/wire"
)

// RawInput asks for texts as they are stored.
type RawInput struct {
	Raw bool `query:"raw" doc:"Show secrets in bodies, headers and errors instead of [delaytask-redacted]; takes the verb bodies"`
}

// shower shows tasks and schedules to one caller.
type shower struct {
	caller   access.Caller
	redactor *redact.Redactor // nil: secrets are shown
}

// shower returns what shows answers to the caller. It refuses raw texts of the tag, or of some tag when it is "", to a
// caller without Bodies.
func (a *API) shower(ctx context.Context, in RawInput, tag string) (shower, error) {
	s := shower{access.From(ctx), a.redactor}
	if !in.Raw {
		return s, nil
	}
	if !s.caller.May(access.Bodies, tag) && (tag != "" || !s.caller.SomeTag(access.Bodies)) {
		return s, wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
			"this token may not see secrets; leave out raw, or make a token with the verb bodies too")
	}
	s.redactor = nil
	return s, nil
}

// task is what the caller sees of a task that it may read. Without Bodies its body is left out.
func (s shower) task(stored *delaytask.TaskRow) wire.Task {
	t := *stored
	if !s.caller.May(access.Bodies, t.Tag) {
		t.Body = nil
	}
	t, redacted := operate.RedactedTask(s.redactor, &t)
	shown := wire.FromTask(&t)
	shown.Redacted = redacted
	return shown
}

func (s shower) tasks(stored []delaytask.TaskRow) []wire.Task {
	shown := make([]wire.Task, len(stored))
	for i := range stored {
		shown[i] = s.task(&stored[i])
	}
	return shown
}

// schedule is task for a schedule.
func (s shower) schedule(stored *delaytask.Schedule) wire.Schedule {
	is := *stored
	if !s.caller.May(access.Bodies, is.Tag) {
		is.Body = nil
	}
	is, redacted := operate.RedactedSchedule(s.redactor, &is)
	shown := wire.FromSchedule(&is)
	shown.Redacted = redacted
	return shown
}
