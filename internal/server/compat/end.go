package compat

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

// endTries bounds how often an end is tried again on a job that has changed since it was read.
const endTries = 5

// finish completes the job as it is now: the protocol has no token that names a lease. Each try carries the version
// that was read. So one transition happens, and any other holder of the job has lost its lease.
func (h *Handler) finish(ctx context.Context, p protocol, q *command) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	task, err := h.find(ctx, p, q, access.Work)
	for n := 0; err == nil && n < endTries; n++ {
		late, met := h.end(ctx, &task)
		if !errors.Is(met, delaytask.ErrLeaseLost) && !errors.Is(met, delaytask.ErrNotFound) {
			return answer{ID: q.id, Late: late}, met
		}
		task, err = h.unfinished(ctx, delaytask.ID(task.ID))
	}
	return answer{}, cmp.Or(err, delaytask.ErrContended)
}

// end tries once. late reports that the TTR had ended.
func (h *Handler) end(ctx context.Context, task *delaytask.TaskRow) (late bool, err error) {
	token := delaytask.Token{ID: task.ID, Version: task.Version}
	if task.Status != delaytask.Pending {
		now := h.cfg.Scheduler.Now()
		return !now.IsZero() && !task.Due.After(now), h.cfg.Scheduler.Finish(ctx, token)
	}
	if task.Attempt == 0 && task.CrashCount == 0 {
		return false, clientError("the job is not handed out: nobody has taken it yet. Delete it to end it")
	}
	return true, core.Of(h.cfg.Scheduler).Complete(ctx, token)
}

// remove cancels the job, pending or handed out.
func (h *Handler) remove(ctx context.Context, p protocol, q *command) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	task, err := h.find(ctx, p, q, access.Change)
	if err != nil {
		return answer{}, err
	}
	_, err = h.cfg.Scheduler.Cancel(ctx, delaytask.ID(task.ID))
	if errors.Is(err, delaytask.ErrFinished) || errors.Is(err, delaytask.ErrNotFound) {
		return answer{}, errNoJob
	}
	return answer{ID: q.id}, err
}

const errNoJob = clientError("there is no unfinished job with this id")

// find returns the unfinished task with the id, if the caller has this right to it.
func (h *Handler) find(ctx context.Context, p protocol, q *command, verb access.Verb) (delaytask.TaskRow, error) {
	topic := q.topic
	if p.global {
		topic = ""
	}
	if err := allow(ctx, verb, topic); err != nil {
		return delaytask.TaskRow{}, err
	}
	ref, err := p.ref(topic, q.id)
	if err != nil {
		return delaytask.TaskRow{}, err
	}
	task, err := h.unfinished(ctx, ref)
	switch {
	case err != nil:
		return delaytask.TaskRow{}, err
	case !p.global && task.Tag != topic, !access.From(ctx).May(verb, task.Tag):
		return delaytask.TaskRow{}, errNoJob // the same for another topic: it must not reveal which jobs there are
	}
	return task, nil
}

// unfinished reads a task that is not finished.
func (h *Handler) unfinished(ctx context.Context, ref delaytask.Ref) (delaytask.TaskRow, error) {
	task, err := h.cfg.Scheduler.Get(ctx, ref)
	if errors.Is(err, delaytask.ErrNotFound) || err == nil && (task.Status.Final() || task.Broken != "") {
		return delaytask.TaskRow{}, errNoJob
	}
	return task, err
}

// pop takes one ready job, or up to max. It waits for the first one as long as wait says, by default not at all. Each
// lease lasts the job's own TTR.
func (h *Handler) pop(ctx context.Context, p protocol, q *command) (answer, error) {
	if err := allow(ctx, access.Work, q.topic); err != nil {
		return answer{}, err
	}
	wait := min(q.wait, int64(reqbody.LongestWait/p.unit))
	options := []delaytask.PopOption{delaytask.PopWait(time.Duration(wait) * p.unit)}
	if q.many {
		options = append(options, delaytask.PopMax(int(min(q.max, math.MaxInt32))))
	}
	waiting, cancel := context.WithTimeout(ctx, reqbody.LongestWait+patience)
	defer cancel()
	defer context.AfterFunc(h.cfg.Stopping, cancel)()
	place := ctx.Value(placeKey{}).(*reqbody.Place)
	room := func(body int) bool { return place.Grow(held(int64(body))) }
	popped, err := core.Of(h.cfg.Scheduler).PopFor(waiting, place.Caller(), room, q.topic, options...)
	if ctx.Err() != nil {
		reqbody.Unclaim(h.cfg.Log, h.cfg.Scheduler, popped)
		return answer{}, context.Cause(ctx)
	}
	if err != nil && h.cfg.Stopping.Err() == nil {
		return answer{}, err
	}
	if err := reqbody.HandOut(ctx, h.cfg.Log, h.cfg.Scheduler, popped, allow); err != nil {
		return answer{}, err
	}
	return p.popped(popped, q.many), nil
}

// popped is the answer that hands tasks out.
func (p protocol) popped(tasks []*delaytask.Popped, many bool) answer {
	var a answer
	if many {
		a.Jobs = make([]job, len(tasks))
	}
	for i, task := range tasks {
		one := job{ID: p.id(&task.Task), Value: string(task.Body)}
		if i == 0 {
			a.ID, a.Value = one.ID, one.Value
		}
		if many {
			a.Jobs[i] = one
		}
	}
	return a
}
