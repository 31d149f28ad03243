package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

type saveInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same request is served once in 24 h"`
	RawBody        []byte `contentType:"application/json"`
	Body           wire.Save
}

type savedOutput struct {
	Status int
	Body   wire.Saved
}

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

// itemOf translates a save.
func itemOf(s *wire.Save) (delaytask.Item, error) {
	options, err := optionsOf(s)
	if err != nil {
		return delaytask.Item{}, err
	}
	body, err := bodyOf(s.Body, s.BodyText)
	if err != nil {
		return delaytask.Item{}, err
	}
	item := delaytask.Item{Tag: s.Tag, Body: body, Options: options}
	if s.Delay != nil {
		item.Delay = s.Delay.Std()
	}
	return item, nil
}

// bodyOf returns the body that a request sets, nil for none.
func bodyOf(body json.RawMessage, text *string) (json.RawMessage, error) {
	if text != nil {
		if len(body) > 0 {
			return nil, fmt.Errorf("%w: body and body_text exclude each other; send one of them",
				delaytask.ErrInvalidBody)
		}
		body = append(json.RawMessage{}, *text...)
	}
	return body, nil
}

func optionsOf(s *wire.Save) ([]delaytask.Option, error) {
	if err := operate.CheckHeaders(s.Headers); err != nil {
		return nil, err
	}
	options := []delaytask.Option{
		delaytask.WithKey(s.Key), delaytask.WithTTR(s.TTR.Std()), delaytask.WithMaxAttempts(s.MaxAttempts),
		delaytask.WithPriority(s.Priority), delaytask.WithHeaders(s.Headers),
	}
	if err := checkApp(s.App); err != nil {
		return nil, err
	}
	options = append(options, delaytask.WithApp(s.App))
	if s.ID != 0 {
		options = append(options, delaytask.WithID(int64(s.ID)))
	}
	if s.NoAttemptLimit {
		options = append(options, delaytask.WithNoAttemptLimit())
	}
	if s.At != nil {
		if s.Delay != nil {
			return nil, fmt.Errorf("%w: delay and at exclude each other", delaytask.ErrInvalidOption)
		}
		options = append(options, delaytask.WithTime(s.At.Std()))
	}
	if s.OnConflict != "" {
		options = append(options, delaytask.WithOnConflict(s.OnConflict))
	}
	options = append(options, delaytask.WithMaxWait(s.MaxWait.Std()))
	late, err := latenessOption(s)
	if err != nil {
		return nil, err
	}
	return append(options, late...), nil
}

func latenessOption(s *wire.Save) ([]delaytask.Option, error) {
	if s.MaxLateness == 0 && s.LatePolicy == "" {
		return nil, nil
	}
	policy := delaytask.LateSkip
	if s.LatePolicy != "" {
		known := false
		if policy, known = wire.ParseLatePolicy(s.LatePolicy); !known {
			return nil, fmt.Errorf("%w: late_policy is %.20q, want run, skip or fail", delaytask.ErrInvalidOption,
				s.LatePolicy)
		}
	}
	if s.MaxLateness < wire.Duration(time.Millisecond) {
		return nil, fmt.Errorf("%w: max_lateness must be at least 1 ms where there is a late_policy",
			delaytask.ErrInvalidOption)
	}
	return []delaytask.Option{delaytask.WithMaxLateness(s.MaxLateness.Std(), policy)}, nil
}
