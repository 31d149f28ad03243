package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Ref names a task by its id, or by tag and key when the id is 0.
type Ref struct {
	ID       int64
	Tag, Key string
}

// controlTries bounds how often a change is tried against a row that keeps changing.
const controlTries = 20

// Cancel ends a task that is not finished. It returns the status that it met. A pending task will not start. An
// executing one may have started, and its processor's context ends.
func (e *Engine) Cancel(ctx context.Context, tx store.Tx, ref Ref, onlyPending bool) (row.Status, error) {
	met, _, err := e.change(ctx, tx, ref, func(r *row.Row, now row.Time) (row.Change, error) {
		switch {
		case r.Status.Final():
			return row.Change{}, processor.ErrFinished
		case onlyPending && r.Status != row.Pending:
			return row.Change{}, processor.ErrNotPending
		}
		return cancelOf(r, now), nil
	})
	if err == nil && tx == nil {
		if met.Status == row.Executing {
			e.renewer.cancelled(met.ID)
		}
		e.watch.tell(processor.EventCancelled, &met, nil)
	}
	return met.Status, err
}

func cancelOf(r *row.Row, now row.Time) row.Change {
	c := changeOf(r, row.Cancelled)
	c.From = r.Status
	c.Due, c.Finish = now, now
	if c.Execution > now { // claimed ahead
		c.Execution = 0
	}
	return c
}

// Reschedule moves the expected time of a pending task: to now and a delay, or to a time when that is set. A body that
// is not nil replaces the task's.
func (e *Engine) Reschedule(
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
		return processor.ErrDelayTooLong
	}
	c.Expected, c.Due, c.Delay, c.Execution = expected, expected, save.RoundUp(expected.Sub(now)), 0
	return nil
}

// SetBody replaces the body of a pending task, whose due time stays.
func (e *Engine) SetBody(ctx context.Context, ref Ref, body []byte) (row.Status, error) {
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
		return row.Change{}, processor.ErrFinished
	case r.Status != row.Pending:
		return row.Change{}, processor.ErrNotPending
	}
	c := changeOf(r, row.Pending)
	c.From = row.Pending
	return c, nil
}

// Complete ends a pending task whose work was done without a lease. It returns [processor.ErrLeaseLost] and changes
// nothing when the task is not pending at that version.
func (e *Engine) Complete(ctx context.Context, id, version int64) error {
	met, _, err := e.change(ctx, nil, Ref{ID: id}, func(r *row.Row, now row.Time) (row.Change, error) {
		if r.Status != row.Pending || r.Version != version {
			return row.Change{}, processor.ErrLeaseLost
		}
		c := changeOf(r, row.Completed)
		c.From = row.Pending
		c.Due, c.Finish = now, now
		return c, nil
	})
	if err == nil {
		e.watch.tell(processor.EventCompleted, &met, nil)
	}
	return err
}

// Retry runs a failed task again, with all its attempts. The errors of its failed attempts stay.
func (e *Engine) Retry(ctx context.Context, ref Ref) error {
	_, after, err := e.change(ctx, nil, ref, func(r *row.Row, now row.Time) (row.Change, error) {
		if r.Status != row.Failed {
			return row.Change{}, processor.ErrNotFailed
		}
		return retryOf(r, now), nil
	})
	if err == nil {
		e.armAfter(nil, after)
	}
	return err
}

func retryOf(r *row.Row, now row.Time) row.Change {
	c := changeOf(r, row.Pending)
	c.From = row.Failed
	c.Due, c.Finish, c.Execution, c.Attempt, c.CrashCount = now, 0, 0, 0, 0
	return c
}

// armAfter arms a row that was changed, after the commit when that was in a caller's transaction. A row without a due
// time has no timer.
func (e *Engine) armAfter(tx store.Tx, d row.Due) {
	switch {
	case d.Due.IsZero():
	case tx != nil:
		e.commits.add(d)
	default:
		e.arm.written(d)
	}
}

// unsureError is that of a change of which it is not known whether an earlier statement has applied it.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// change applies one fenced transition to a row, and finds the row again when it has moved meanwhile. It returns the
// row as it was before, and what the run queue has to know of it now.
func (e *Engine) change(
	ctx context.Context, tx store.Tx, ref Ref, decide func(*row.Row, row.Time) (row.Change, error),
) (met row.Row, after row.Due, err error) {
	if tx != nil {
		if err := store.InTransaction(ctx, e.store, tx); err != nil {
			return met, after, err
		}
	}
	return e.tryChange(ctx, tx, ref, decide, tries{})
}

// tries says how a change is tried.
type tries struct {
	patient bool        // wait for a database that is away, and for transactions of others, until the context ends
	unsure  *row.Change // one that was sent, and may be applied by now
}

// tryChange is change after the check of the transaction. Its error may be an [unsureError].
func (e *Engine) tryChange(
	ctx context.Context, tx store.Tx, ref Ref, decide func(*row.Row, row.Time) (row.Change, error), how tries,
) (met row.Row, after row.Due, err error) {
	unsure, patient := how.unsure, how.patient
	defer func() {
		if err != nil && unsure != nil {
			err = unsureError{err}
		}
	}()
	for n, refused := 0, 0; refused < controlTries; n++ {
		if n > 0 && (tx != nil || !lifecycle.Sleep(ctx, lifecycle.Backoff(n))) {
			break
		}
		if e.Life.Err() != nil {
			return met, after, processor.ErrClosed
		}
		r, err := e.find(ctx, tx, ref)
		if patient && mayPass(ctx, err) {
			continue
		}
		if err != nil {
			return met, after, err
		}
		if unsure != nil && hasEffect(r, unsure) {
			if r.Status == row.Pending {
				after = r.Sighting()
			}
			return met, after, nil
		}
		if unsure != nil && r.Version == unsure.Version+1 { // another change has taken the version that it names
			unsure = nil
		}
		now, err := e.certain(ctx)
		if err != nil {
			return *r, after, err
		}
		c, err := decide(r, now)
		if err != nil {
			return *r, after, err
		}
		applied, err := e.write(ctx, tx, c)
		if row.ClassOf(err) == row.ClassDuplicate && err != nil {
			return *r, after, e.keyTaken(ctx, r, err)
		}
		if err != nil && (tx != nil || !mayRetry(err)) {
			return *r, after, err
		}
		if applied == 1 || err != nil && e.isChanged(ctx, &c) {
			return *r, afterChange(r, c), nil
		}
		if row.ClassOf(err) == row.ClassUnknown && err != nil {
			met, unsure, ref = *r, &c, Ref{ID: r.ID}
		}
		if !patient || err == nil {
			refused++
		}
	}
	if err := context.Cause(ctx); err != nil {
		return met, after, err
	}
	return met, after, processor.ErrContended
}

// mayPass reports whether err is one of the store that may not come again, and ctx has not ended.
func mayPass(ctx context.Context, err error) bool {
	_, ofStore := errors.AsType[*row.Error](err)
	return (ofStore && mayRetry(err) || row.Ended(err)) && ctx.Err() == nil
}

// callOf bounds a call of the store. In a transaction its caller does.
func (e *Engine) callOf(ctx context.Context, tx store.Tx) (context.Context, context.CancelFunc) {
	if tx != nil {
		return ctx, func() {}
	}
	return e.CallIn(ctx)
}

func (e *Engine) write(ctx context.Context, tx store.Tx, c row.Change) (applied int, err error) {
	ctx, cancel := e.callOf(ctx, tx)
	defer cancel()
	if tx != nil {
		return e.store.Update(ctx, tx, []row.Change{c}) // on its caller's connection
	}
	return e.update(ctx, []row.Change{c})
}

// afterChange is what the run queue has to know of a row after the change.
func afterChange(r *row.Row, c row.Change) row.Due {
	return row.Due{
		ID: r.ID, Version: r.Version + 1, Tag: r.Tag, Due: c.Due, Priority: r.Priority, CrashCount: c.CrashCount,
	}
}

// mayRetry reports whether another try, or reading back, can help.
func mayRetry(err error) bool {
	switch row.ClassOf(err) {
	case row.ClassNotApplied, row.ClassLocked, row.ClassUnknown:
		return true
	default:
		return false
	}
}

// isChanged reads back a change of unknown outcome.
func (e *Engine) isChanged(ctx context.Context, c *row.Change) bool {
	ctx, cancel := e.CallIn(ctx)
	defer cancel()
	rows, _, err := e.store.Get(ctx, nil, []int64{c.ID})
	return err == nil && len(rows) == 1 && hasEffect(&rows[0], c)
}

// hasEffect reports whether the row is as the change leaves it. The version alone does not tell: another process may
// have made the row pending as well, with another due time. A reschedule still shows in later versions, as no claim and
// no result writes the expected time.
func hasEffect(r *row.Row, c *row.Change) bool {
	switch {
	case r.Version <= c.Version, c.Body != nil && !bytes.Equal(r.Body, c.Body):
		return false
	case !c.Expected.IsZero():
		return r.Expected == c.Expected
	default:
		return r.Version == c.Version+1 && r.Status == c.To && (c.To != row.Pending || r.Due == c.Due)
	}
}

func (e *Engine) find(ctx context.Context, tx store.Tx, ref Ref) (*row.Row, error) {
	ctx, cancel := e.callOf(ctx, tx)
	defer cancel()
	var rows []row.Row
	var broken []row.Broken
	var err error
	if ref.ID != 0 {
		rows, broken, err = e.store.Get(ctx, tx, []int64{ref.ID})
	} else {
		rows, err = e.store.FindActive(ctx, tx, []row.TagKey{{Tag: ref.Tag, Key: ref.Key}})
	}
	return onlyRow(rows, broken, err)
}

// onlyRow is what a read of one row has found.
func onlyRow(rows []row.Row, broken []row.Broken, err error) (*row.Row, error) {
	switch {
	case err != nil:
		return nil, err
	case len(rows) > 0:
		return &rows[0], nil
	case len(broken) > 0:
		return nil, fmt.Errorf("%w: %s", processor.ErrBroken, broken[0].Reason)
	default:
		return nil, processor.ErrNotFound
	}
}

// keyTaken returns a [processor.DuplicateError] with the unfinished task that has the key of a retried one.
func (e *Engine) keyTaken(ctx context.Context, r *row.Row, refusal error) error {
	active, err := e.store.FindActive(ctx, nil, []row.TagKey{{Tag: r.Tag, Key: r.Key}})
	if err != nil {
		return err
	}
	if len(active) == 0 {
		return refusal
	}
	return &processor.DuplicateError{ID: active[0].ID}
}

// Bulk is a change of all tasks that match a filter, page by page in the order of their ids. It leaves out what has
// changed meanwhile.
type Bulk struct {
	Filter   row.Filter     // AfterID is where to begin; Limit is the size of a page, 500 when 0
	DryRun   bool           // count only
	Progress func(done int) // called after every page; may be nil
}

const (
	bulkPage  = 500
	bulkBytes = 16 << 20 // of errors in a page
)

// CancelWhere cancels the pending tasks that match. It returns how many it changed, also beside an error.
func (e *Engine) CancelWhere(ctx context.Context, b Bulk) (int, error) {
	return e.changeWhere(ctx, b, row.Pending, cancelOf)
}

// RetryWhere retries the failed tasks that match. A task whose key another unfinished task has stays failed.
func (e *Engine) RetryWhere(ctx context.Context, b Bulk) (int, error) {
	return e.changeWhere(ctx, b, row.Failed, retryOf)
}

func (e *Engine) changeWhere(
	ctx context.Context, b Bulk, from row.Status, change func(*row.Row, row.Time) row.Change,
) (int, error) {
	f := b.Filter
	if f.Status != nil && *f.Status != from {
		return 0, fmt.Errorf("%w: only %s tasks can be changed so, and the filter asks for %s ones",
			processor.ErrInvalidOption, from, *f.Status)
	}
	f.Status = &from
	if f.Limit <= 0 {
		f.Limit = bulkPage
	}
	f.MaxBytes = bulkBytes
	done := 0
	for {
		rows, broken, err := e.store.List(ctx, f, false)
		if err != nil {
			return done, err
		}
		if b.DryRun {
			done += len(rows)
		} else {
			n, err := e.changePage(ctx, rows, change)
			done += n
			if err != nil {
				return done, err
			}
		}
		if b.Progress != nil {
			b.Progress(done)
		}
		if !f.Full(rows, broken) {
			return done, nil
		}
		f.AfterID = lastID(rows, broken)
	}
}

// changePage changes a page in one statement, or row by row when one of its rows is refused or locked.
func (e *Engine) changePage(
	ctx context.Context, rows []row.Row, change func(*row.Row, row.Time) row.Change,
) (applied int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	now, err := e.certain(ctx)
	if err != nil {
		return 0, err
	}
	changes := make([]row.Change, len(rows))
	for i := range rows {
		changes[i] = change(&rows[i], now)
	}
	applied, err = e.update(ctx, changes)
	e.tellCancelled(ctx, rows, changes, applied)
	switch taken := err != nil && row.ClassOf(err) == row.ClassDuplicate; {
	case taken && len(rows) == 1:
		return 0, nil
	case err == nil, len(rows) == 1, !taken && !isLocked(err):
		return applied, err
	}
	for i := range rows {
		err := whileLocked(ctx, bulkTries, func() error {
			n, err := e.changePage(ctx, rows[i:i+1], change)
			applied += n
			return err
		})
		if err != nil && !isLocked(err) {
			return applied, err
		}
	}
	return applied, nil
}

const bulkTries = 4 // within about 150 ms

func lastID(rows []row.Row, broken []row.Broken) (last int64) {
	for i := range rows {
		last = max(last, rows[i].ID)
	}
	for _, b := range broken {
		last = max(last, b.ID)
	}
	return last
}
