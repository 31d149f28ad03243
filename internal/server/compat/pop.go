package compat

import (
	"context"
	"math"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

// pop takes a job that is ready, or as many as max says, and waits for the first one as long as wait says: not at all
// by default. Each lease lasts the job's own TTR.
func (h *Handler) pop(ctx context.Context, p protocol, q *request) (answer, error) {
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
	defer context.AfterFunc(h.stopping, cancel)()
	popped, err := h.scheduler.Pop(waiting, q.topic, options...)
	if ctx.Err() != nil {
		reqbody.GiveBack(h.log, h.scheduler, popped)
		return answer{}, context.Cause(ctx)
	}
	if err != nil && h.stopping.Err() == nil {
		return answer{}, err
	}
	if err := reqbody.HandOut(ctx, h.log, h.scheduler, popped, allow); err != nil {
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
