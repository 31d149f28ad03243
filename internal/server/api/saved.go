package api

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

type savedOutput struct {
	Status int
	Body   wire.Saved
}

// saved answers with the stored task, which it reads where it was there before.
func (a *API) saved(
	ctx context.Context, item delaytask.Item, saved core.Saved, err error,
) (*savedOutput, error) {
	duplicate := errors.Is(err, delaytask.ErrDuplicate)
	if err != nil && !duplicate {
		return nil, a.problem(err)
	}
	out := savedAs(duplicate, saved.Rescheduled)
	if task := saved.Task(); task != nil {
		out.Body.Task = wire.FromTask(task)
		return out, nil
	}
	task, err := a.scheduler.Get(ctx, delaytask.ID(saved.ID))
	if err != nil {
		// The task is stored; the caller can read it later.
		a.log.Warn("a saved task could not be read back", "task", saved.ID, "err", err)
		out.Body.Task = wire.Task{ID: wire.ID(saved.ID)}
		return out, nil
	}
	a.show(ctx, out, &task, item)
	return out, nil
}

// savedAs is the answer to a save, without its task.
func savedAs(duplicate, rescheduled bool) *savedOutput {
	out := &savedOutput{
		Status: http.StatusCreated, Body: wire.Saved{Duplicate: duplicate, Rescheduled: rescheduled},
	}
	if duplicate || rescheduled {
		out.Status = http.StatusOK
	}
	return out
}

// show adds a task to an answer that was there before the save, and may have been changed since. A caller with Read
// sees it as a reader does. Another one sees what it has sent. Of a task that has the key, which another caller may
// have saved, it learns that it exists.
func (a *API) show(ctx context.Context, out *savedOutput, task *delaytask.TaskRow, item delaytask.Item) {
	out.Body.Existing = out.Status == http.StatusCreated
	switch {
	case by(ctx).May(access.Read, task.Tag):
		seen, _ := a.view(ctx, RawInput{}).Seen(delaytask.ID(task.ID), task) // it may
		out.Body.Task = taskOf(&seen)
	case out.Body.Existing:
		out.Body.Task = sent(task.ID, item)
	default:
		out.Body.Task = wire.Task{ID: wire.ID(task.ID), Tag: task.Tag, Key: task.Key, App: task.App(),
			Status: task.Status}
	}
}

// sent is a task as its caller has sent it.
func sent(id int64, item delaytask.Item) wire.Task {
	s, err := request.NewSave(item.Tag, item.Body, item.Delay, request.Limits{Body: math.MaxInt}, item.Options...)
	if err != nil { // it was saved before
		return wire.Task{ID: wire.ID(id)}
	}
	t := delaytask.TaskRow{
		ID: id, Tag: s.Tag, Key: s.Key, Body: s.Body, Headers: s.Headers, Priority: s.Priority, Delay: s.Delay,
		Expected: s.At, TTR: s.TTR, MaxAttempts: s.MaxAttempts, MaxLate: s.MaxLate, LatePolicy: s.LatePolicy,
	}
	return wire.FromTask(&t)
}
