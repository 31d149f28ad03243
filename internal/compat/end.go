package compat

import (
	"context"
	"errors"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
)

// finish completes the lease that stands now: there is no token on the wire to say which one is meant. Whoever changes the task
// between the look and the finish wins, because the finish carries the version that was looked at.
func (h *Handler) finish(ctx context.Context, p protocol, q *request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	task, err := h.find(ctx, p, q, access.Work)
	if err != nil {
		return answer{}, err
	}
	now := h.scheduler.Now()
	switch {
	case task.Status == delaytask.Pending:
		return answer{}, complaint("the job is not handed out: its TTR has ended, or nobody has taken it yet")
	case now.IsZero():
		return answer{}, delaytask.ErrNotReady
	case !task.Due.After(now):
		return answer{}, complaint("the job's TTR has ended; it is handed out again")
	}
	err = h.scheduler.Finish(ctx, delaytask.Token{ID: task.ID, Version: task.Version})
	if errors.Is(err, delaytask.ErrLeaseLost) || errors.Is(err, delaytask.ErrNotFound) {
		return answer{}, complaint("the job's TTR has ended, or somebody else has ended the job")
	}
	return answer{ID: q.id}, err
}

// remove cancels the job, whether it waits or is handed out.
func (h *Handler) remove(ctx context.Context, p protocol, q *request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	task, err := h.find(ctx, p, q, access.Change)
	if err != nil {
		return answer{}, err
	}
	_, err = h.scheduler.Cancel(ctx, delaytask.ID(task.ID))
	if errors.Is(err, delaytask.ErrFinished) || errors.Is(err, delaytask.ErrNotFound) {
		return answer{}, errNoJob
	}
	return answer{ID: q.id}, err
}

const errNoJob = complaint("there is no unfinished job with this id")

// find returns the unfinished task with the id, if the caller may do this to it.
func (h *Handler) find(ctx context.Context, p protocol, q *request, verb access.Verb) (delaytask.Task, error) {
	topic := q.topic
	if p.global {
		topic = ""
	}
	if err := allow(ctx, verb, topic); err != nil {
		return delaytask.Task{}, err
	}
	ref, err := p.ref(topic, q.id)
	if err != nil {
		return delaytask.Task{}, err
	}
	task, err := h.scheduler.Get(ctx, ref)
	switch {
	case errors.Is(err, delaytask.ErrNotFound):
		return delaytask.Task{}, errNoJob
	case err != nil:
		return delaytask.Task{}, err
	case task.Status.Final(), task.Broken != "", !p.global && task.Tag != topic:
		return delaytask.Task{}, errNoJob
	}
	return task, allow(ctx, verb, task.Tag)
}
