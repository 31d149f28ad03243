package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func (a *API) saveOperation() {
	op := a.operation(http.MethodPost, "/v1/tasks", "saveTask", "Save a task",
		"Answers 201 with the task once it is committed. When an unfinished task of the tag and the app carries the "+
			"key, it answers 200 with that task, and duplicate: true or, as on_conflict says, rescheduled: true. "+
			"With another on_conflict than keep_existing it answers 409 not_pending while that task is executing. "+
			"The status is absent when the task could not be read, or is gone. "+
			"A tag, and an app, is 1 to 128 of A–Z a–z 0–9 . _ - : /; with an app, app and key together have at most "+
			"240 characters. To a repeated save a caller without the verb read gets what it has sent, and not how the "+
			"task is now.",
		groupTasks)
	op.DefaultStatus = http.StatusCreated
	huma.Register(a.spec, op, a.save)
}

func (a *API) save(ctx context.Context, in *saveInput) (*savedOutput, error) {
	item, err := itemOf(&in.Body)
	if err != nil {
		return nil, a.problem(err)
	}
	if in.IdempotencyKey != "" {
		return a.saveOnce(ctx, in, item)
	}
	saved, err := a.operator.Save(ctx, by(ctx), item)
	return a.saved(ctx, item, saved, err)
}
