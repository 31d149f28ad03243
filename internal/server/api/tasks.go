package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// GetInput names a task by its id, and may wait for its end.
type GetInput struct {
	IDInput
	RawInput
	Wait string `query:"wait" doc:"How long to wait for its end, such as 30s; at most 55s; default: not at all"`
}

type ChangeInput struct{ Body wire.Change }

// CancelInput restricts what is cancelled.
type CancelInput struct {
	OnlyPending bool   `query:"only_pending" doc:"Leave a task alone that is executing, with 409 not_pending"`
	Version     string `query:"version" minLength:"1" doc:"Only if it still has this version; else 409 version_changed"`
}

// Each operation on a task takes it by its id, or by its key.
type (
	idChange struct {
		IDInput
		ChangeInput
	}
	keyChange struct {
		KeyInput
		ChangeInput
	}
	idCancel struct {
		IDInput
		CancelInput
	}
	keyCancel struct {
		KeyInput
		CancelInput
	}
)

func (a *API) taskOperations() {
	const withErrors = "With its body and the errors of its attempts."
	get := a.operation(http.MethodGet, taskPath, "getTask", "Show a task", withErrors+
		" With wait it answers once the task is completed, failed or cancelled; when the wait is over, it shows the "+
		"task as it is then.", groupTasks)
	get.Middlewares = huma.Middlewares{a.paged} // it has a wait of its own
	huma.Register(a.spec, get,
		func(ctx context.Context, in *GetInput) (*output[wire.Task], error) { return a.getEnded(ctx, in) })
	byKey := a.operation(http.MethodGet, keyPath, "getTaskByKey", "Show the unfinished task with a key", withErrors,
		groupTasks)
	byKey.Middlewares = append(byKey.Middlewares, a.paged)
	huma.Register(a.spec, byKey,
		func(ctx context.Context, in *keyRaw) (*output[wire.Task], error) {
			return a.get(ctx, &in.KeyInput, in.RawInput)
		})

	const pendingOnly = "Reschedules it with delay or at, replaces its body, or both, while it is pending."
	huma.Register(a.spec, a.operation(http.MethodPatch, taskPath, "changeTask", "Change a pending task", pendingOnly,
		groupTasks),
		func(ctx context.Context, in *idChange) (*output[wire.Met], error) {
			return a.change(ctx, &in.IDInput, &in.Body)
		})
	huma.Register(a.spec, a.operation(http.MethodPatch, keyPath, "changeTaskByKey",
		"Change the pending task with a key", pendingOnly, groupTasks),
		func(ctx context.Context, in *keyChange) (*output[wire.Met], error) {
			return a.change(ctx, &in.KeyInput, &in.Body)
		})

	const mayRun = "From pending it will not start. From executing it may have; its executor's result is refused."
	huma.Register(a.spec, a.operation(http.MethodDelete, taskPath, "cancelTask", "Cancel a task", mayRun, groupTasks),
		func(ctx context.Context, in *idCancel) (*output[wire.Met], error) {
			return a.cancel(ctx, &in.IDInput, &in.CancelInput)
		})
	huma.Register(a.spec, a.operation(http.MethodDelete, keyPath, "cancelTaskByKey",
		"Cancel the unfinished task with a key", mayRun, groupTasks),
		func(ctx context.Context, in *keyCancel) (*output[wire.Met], error) {
			return a.cancel(ctx, &in.KeyInput, &in.CancelInput)
		})

	huma.Register(a.spec, a.operation(http.MethodPost, taskPath+"/retry", "retryTask", "Run a failed task again",
		"Now, with all its attempts; the errors of the old ones are kept.", groupTasks),
		func(ctx context.Context, in *IDInput) (*output[wire.Met], error) { return a.retry(ctx, in) })

	const whyNot = "Not due, paused, unserved, waiting for a retry, leased …"
	huma.Register(a.spec, a.operation(http.MethodGet, taskPath+"/explain", "explainTask", "Say why a task has not run",
		whyNot, groupTasks),
		func(ctx context.Context, in *idRaw) (*output[wire.Explanation], error) {
			return a.explain(ctx, &in.IDInput, in.RawInput)
		})
	huma.Register(a.spec, a.operation(http.MethodGet, keyPath+"/explain", "explainTaskByKey",
		"Say why the task with a key has not run", whyNot, groupTasks),
		func(ctx context.Context, in *keyRaw) (*output[wire.Explanation], error) {
			return a.explain(ctx, &in.KeyInput, in.RawInput)
		})
}

// getEnded shows a task once it has ended, or when the wait is over.
func (a *API) getEnded(ctx context.Context, in *GetInput) (*output[wire.Task], error) {
	wait, err := waitOf(in.Wait)
	if err != nil {
		return nil, a.problem(err)
	}
	now, err := a.getNow(ctx, in)
	if err != nil || wait == 0 || now.Body.Broken != "" || now.Body.Status.Final() {
		return now, err
	}
	room := pageRoomOf(ctx)
	room.leave() // while it waits
	waiting, done := context.WithTimeout(ctx, wait)
	defer done()
	defer context.AfterFunc(a.stopping, done)()
	task, err := a.scheduler.Wait(waiting, int64(now.Body.ID))
	if over := ctx.Err() == nil && waiting.Err() != nil; err != nil && !over {
		return nil, a.problem(err)
	}
	again, refused := access.Again(ctx) // the token may have been revoked meanwhile
	switch {
	case refused != nil:
		return nil, a.problem(refused)
	case err != nil:
		return a.getNow(again, in)
	}
	if err := room.enterTask(ctx); err != nil {
		return nil, err
	}
	shown, err := a.view(again, in.RawInput).Seen(delaytask.ID(task.ID), &task)
	room.keep(2*int64(len(task.Body)+len(task.ErrorStack)) + taskRoom)
	return outputOf(a, taskOf(&shown), err)
}

// getNow is get within the time of an operation that does not wait.
func (a *API) getNow(ctx context.Context, in *GetInput) (*output[wire.Task], error) {
	limited, cancel := context.WithTimeout(ctx, a.requestWait)
	defer cancel()
	return a.get(limited, &in.IDInput, in.RawInput)
}

func (a *API) get(ctx context.Context, in named, raw RawInput) (*output[wire.Task], error) {
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	room := pageRoomOf(ctx)
	if err := room.enterTask(ctx); err != nil {
		return nil, err
	}
	task, err := a.view(ctx, raw).Task(ctx, ref)
	room.keep(2*int64(len(task.Body)+len(task.ErrorStack)) + taskRoom)
	return outputOf(a, taskOf(&task), err)
}

func (a *API) change(ctx context.Context, in named, c *wire.Change) (*output[wire.Met], error) {
	body, err := bodyOf(c.Body, c.BodyText)
	if err != nil {
		return nil, a.problem(err)
	}
	if c.Delay == nil && c.At == nil && body == nil {
		return nil, a.problem(fmt.Errorf("%w: send delay or at, body, or both", delaytask.ErrInvalidOption))
	}
	if c.Delay != nil && c.At != nil {
		return nil, a.problem(fmt.Errorf("%w: delay and at exclude each other", delaytask.ErrInvalidOption))
	}
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	var options []delaytask.ChangeOption
	if c.Version != nil {
		options = append(options, delaytask.IfVersion(*c.Version))
	}
	if c.Delay == nil && c.At == nil {
		return a.met(a.operator.SetBody(ctx, by(ctx), ref, body, options...))
	}
	if body != nil {
		options = append(options, delaytask.Body(body))
	}
	if c.Delay != nil {
		return a.met(a.operator.Reschedule(ctx, by(ctx), ref, c.Delay.Std(), options...))
	}
	return a.met(a.operator.Reschedule(ctx, by(ctx), ref, 0, append(options, delaytask.To(c.At.Std()))...))
}

func (a *API) cancel(ctx context.Context, in named, how *CancelInput) (*output[wire.Met], error) {
	var options []delaytask.ChangeOption
	if how.OnlyPending {
		options = append(options, delaytask.OnlyPending())
	}
	if how.Version != "" {
		version, err := strconv.ParseInt(how.Version, 10, 64)
		if err != nil {
			return nil, a.problem(fmt.Errorf("%w: version %.40q: want the number of a task that was read",
				delaytask.ErrInvalidOption, how.Version))
		}
		options = append(options, delaytask.IfVersion(version))
	}
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	return a.met(a.operator.Cancel(ctx, by(ctx), ref, options...))
}

func (a *API) retry(ctx context.Context, in named) (*output[wire.Met], error) {
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	return a.met(a.operator.Retry(ctx, by(ctx), ref))
}

func (a *API) met(met operate.Met, err error) (*output[wire.Met], error) {
	return outputOf(a, wire.Met{ID: wire.ID(met.ID), Met: met.Status}, err)
}

func (a *API) explain(ctx context.Context, in named, raw RawInput) (*output[wire.Explanation], error) {
	ref, err := in.ref()
	if err != nil {
		return nil, a.problem(err)
	}
	e, err := a.view(ctx, raw).Explain(ctx, ref)
	if err != nil {
		return nil, a.problem(err)
	}
	e.Task.Body = nil
	return &output[wire.Explanation]{wire.Explanation{Reason: e.Reason, Text: e.Text, Task: taskOf(&e.Task)}}, nil
}
