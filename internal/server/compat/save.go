package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/processor"
)

// saveTries bounds how often a save is tried again after it met a task that finished meanwhile.
const saveTries = 3

// save stores a job. Adding an unfinished job again succeeds when everything is the same, so that a client that lost
// the answer may repeat the request.
func (h *Handler) save(ctx context.Context, p protocol, q *command) (answer, error) {
	item, err := h.item(ctx, p, q)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for range saveTries {
		stored, err := h.saveOnce(ctx, item)
		switch {
		case errors.Is(err, delaytask.ErrOutcomeUnknown):
			return answer{}, &refusal{http.StatusServiceUnavailable,
				"whether the job is stored is not known; add it again with the same id, which is safe"}
		case errors.Is(err, delaytask.ErrNotStored):
			return answer{}, &refusal{http.StatusServiceUnavailable,
				"the job is not stored, because the database was not reached in time; add it again"}
		case err != nil:
			return answer{}, err
		case stored:
			return answer{ID: q.id}, nil
		}
	}
	return answer{}, delaytask.ErrContended
}

// saveOnce returns false when the task that had the id has finished.
func (h *Handler) saveOnce(ctx context.Context, item delaytask.Item) (stored bool, err error) {
	_, err = h.cfg.Scheduler.SaveDelayTask(ctx, item.Tag, item.Body, item.Delay, item.Options...)
	there, taken := errors.AsType[*delaytask.DuplicateError](err)
	if !taken {
		return err == nil, err
	}
	task, err := h.cfg.Scheduler.Get(ctx, delaytask.ID(there.ID))
	switch {
	case errors.Is(err, delaytask.ErrNotFound), err == nil && task.Status.Final():
		return false, nil
	case err != nil:
		return false, err
	case !same(&task, item):
		return false, clientError("this id is taken by an unfinished job that differs; finish or delete that one first")
	}
	return true, nil
}

// same reports whether the task equals the one that would have been stored. A TTR that is left out equals any.
func same(task *delaytask.TaskRow, item delaytask.Item) bool {
	save, err := request.NewSave(item.Tag, item.Body, item.Delay, request.Limits{Body: math.MaxInt},
		item.Options...)
	return err == nil && task.Tag == save.Tag && bytes.Equal(task.Body, save.Body) && task.Delay == save.Delay &&
		(save.TTR == 0 || task.TTR == save.TTR)
}

// item translates a job, and checks the caller's right to save it.
func (h *Handler) item(ctx context.Context, p protocol, q *command) (delaytask.Item, error) {
	if err := allow(ctx, access.ToSave(q.topic), q.topic); err != nil {
		return delaytask.Item{}, err
	}
	key, err := p.key(q.id)
	if err != nil {
		return delaytask.Item{}, err
	}
	delay, err := p.span(q.delay, delaytask.ErrDelayTooLong)
	if err != nil {
		return delaytask.Item{}, err
	}
	ttr, err := p.span(q.ttr, delaytask.ErrInvalidTTR)
	if err != nil {
		return delaytask.Item{}, err
	}
	item := delaytask.Item{
		Tag: q.topic, Body: json.RawMessage(q.body), Delay: delay,
		Options: []delaytask.Option{p.keyOption(key), delaytask.WithNoAttemptLimit(), delaytask.WithTTR(ttr),
			delaytask.WithHeader(ttrHeader, strconv.FormatInt(ttr.Milliseconds(), 10))},
	}
	if err := h.cfg.Check(item.Tag, []byte(q.body)); err != nil {
		return delaytask.Item{}, clientError(err.Error())
	}
	return item, nil
}

// ttrHeader marks a task as a job of these routes. It holds the requested TTR in milliseconds.
const ttrHeader = "delaytask-ttr"

// RetryAfterTTR runs a failed job again when its TTR has passed since the attempt began, as these protocols specify,
// and not after the tag's backoff. usual is the TTR of jobs that were added without one. It changes neither tasks that
// were saved in another way, nor an error that decides about the next attempt itself.
func RetryAfterTTR(usual time.Duration) processor.Middleware {
	return func(next processor.Processor) processor.Processor {
		next = processor.Recovery()(next) // a panic is a failure too
		return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			began := time.Now()
			err := next.Process(ctx, task)
			ttr, ours := ttrOf(task, usual)
			if err == nil || !ours || saysWhen(err) {
				return err
			}
			if errors.Is(context.Cause(ctx), delaytask.ErrTimeout) && errors.Is(err, context.DeadlineExceeded) {
				err = delaytask.ErrTimeout // as the engine would convert it, and lose the wait
			}
			return processor.RetryAfter(err, ttr-time.Since(began))
		})
	}
}

// saysWhen reports whether the error decides about the next attempt.
func saysWhen(err error) bool {
	_, permanent := errors.AsType[*processor.PermanentError](err)
	_, snooze := errors.AsType[*processor.SnoozeError](err)
	_, retry := errors.AsType[*processor.RetryAfterError](err)
	_, handOver := errors.AsType[*processor.HandOverError](err)
	return permanent || snooze || retry || handOver
}

func ttrOf(task *delaytask.Task, usual time.Duration) (ttr time.Duration, ours bool) {
	text, ours := task.Headers[ttrHeader]
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 {
		return max(time.Duration(ms)*time.Millisecond, time.Second), ours
	}
	return usual, ours
}
