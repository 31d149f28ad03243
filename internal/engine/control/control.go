package control

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/store"
)

// Ref names a task by its id, or by tag and key when the id is 0. A change of it is refused with
// [delaytask.ErrVersionChanged] when the task has another version than Version, which is nil for any.
type Ref struct {
	ID       int64
	Tag, Key string
	Version  *int64
}

// Cancel ends a task that is not finished. It returns the status that it met. A pending task will not start. An
// executing one may have started, and its processor's context ends.
func (e *Control) Cancel(ctx context.Context, tx store.Tx, ref Ref, onlyPending bool) (row.Status, error) {
	met, _, err := e.change(ctx, tx, ref, func(r *row.Row, now row.Time) (row.Change, error) {
		switch {
		case r.Status.Final():
			return row.Change{}, delaytask.ErrFinished
		case onlyPending && r.Status != row.Pending:
			return row.Change{}, delaytask.ErrNotPending
		}
		return cancelOf(r, now), nil
	})
	if err == nil && tx == nil {
		if met.Status == row.Executing {
			e.running.Stopped(met.ID)
		}
		e.Tell(delaytask.EventCancelled, &met, nil)
	}
	return met.Status, err
}

func cancelOf(r *row.Row, now row.Time) row.Change {
	c := table.ChangeOf(r, row.Cancelled)
	c.From = r.Status
	c.Due = now
	if c.Execution > now { // claimed ahead
		c.Execution = 0
	}
	return c
}

// Reschedule moves the expected time of a pending task: to now and a delay, or to a time when that is set. A body that
// is not nil replaces the task's.
func (e *Control) Reschedule(
	ctx context.Context, tx store.Tx, ref Ref, delay time.Duration, at time.Time, body []byte,
) (row.Status, error) {
	met, after, err := e.change(ctx, tx, ref, func(r *row.Row, _ row.Time) (row.Change, error) {
		c, err := pendingOnly(r)
		if err != nil {
			return c, err
		}
		now, err := e.saver.AtMost(ctx)
		if err != nil {
			return c, err
		}
		c.Body = body
		return c, moveTo(&c, save.Expected(now, delay, at), now)
	})
	if err == nil {
		e.armAfter(tx, after)
	}
	return met.Status, err
}

// moveTo makes the change give its task another expected time.
func moveTo(c *row.Change, expected, now row.Time) error {
	if expected >= row.MaxTime {
		return delaytask.ErrDelayTooLong
	}
	c.Expected, c.Due, c.Delay, c.Execution = expected, expected, save.RoundUp(expected.Sub(now)), 0
	return nil
}

// SetBody replaces the body of a pending task, whose due time stays.
func (e *Control) SetBody(ctx context.Context, ref Ref, body []byte) (row.Status, error) {
	met, after, err := e.change(ctx, nil, ref, func(r *row.Row, _ row.Time) (row.Change, error) {
		c, err := pendingOnly(r)
		c.Body = body
		return c, err
	})
	if err == nil {
		e.armAfter(nil, after)
	}
	return met.Status, err
}

// pendingOnly returns a change that keeps everything of a pending task.
func pendingOnly(r *row.Row) (row.Change, error) {
	switch {
	case r.Status.Final():
		return row.Change{}, delaytask.ErrFinished
	case r.Status != row.Pending:
		return row.Change{}, delaytask.ErrNotPending
	}
	c := table.ChangeOf(r, row.Pending)
	c.From = row.Pending
	return c, nil
}

// Complete ends a pending task whose work was done without a lease. It returns [delaytask.ErrLeaseLost] and changes
// nothing when the task is not pending at that version.
func (e *Control) Complete(ctx context.Context, id, version int64) error {
	met, _, err := e.change(ctx, nil, Ref{ID: id}, func(r *row.Row, now row.Time) (row.Change, error) {
		if r.Status != row.Pending || r.Version != version {
			return row.Change{}, delaytask.ErrLeaseLost
		}
		c := table.ChangeOf(r, row.Completed)
		c.From = row.Pending
		c.Due = now
		return c, nil
	})
	if err == nil {
		e.Tell(delaytask.EventCompleted, &met, nil)
	}
	return err
}

// Retry runs a failed task again, with all its attempts. The errors of its failed attempts stay.
func (e *Control) Retry(ctx context.Context, ref Ref) error {
	_, after, err := e.change(ctx, nil, ref, func(r *row.Row, now row.Time) (row.Change, error) {
		if r.Status != row.Failed {
			return row.Change{}, delaytask.ErrNotFailed
		}
		return retryOf(r, now), nil
	})
	if err == nil {
		e.armAfter(nil, after)
	}
	return err
}

func retryOf(r *row.Row, now row.Time) row.Change {
	c := table.ChangeOf(r, row.Pending)
	c.From = row.Failed
	c.Due, c.Execution, c.Attempt, c.CrashCount = now, 0, 0, 0
	return c
}
