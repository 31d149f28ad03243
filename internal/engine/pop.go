package engine

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

// Pop waits until tasks of the tags are due, and hands out up to the maximum. It returns none when the wait has passed,
// the context's cause when ctx has ended, and an error when it cannot know whether any is due.
func (e *Engine) Pop(ctx context.Context, r lease.PopRequest) ([]*delaytask.Task, error) {
	if !e.running() {
		return nil, delaytask.ErrNotStarted
	}
	r.Tags = row.Distinct(r.Tags)
	fresh, err := e.arm.Tags.Pop(r.Tags, r.Caller)
	if err != nil {
		return nil, err
	}
	if fresh {
		e.announceAtBeat()
		table.Signal(e.beatSoon)
	}
	tasks, err := e.leases.Take(ctx, r, fresh)
	switch {
	case len(tasks) > 0:
		return tasks, nil
	case !e.running():
		return nil, delaytask.ErrClosed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("looking for tasks to pop: %w", err)
	}
	return nil, nil
}
