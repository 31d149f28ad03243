package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

// Cancel ends a task that is not finished, and returns the status that it met: from [delaytask.Pending] it will not
// start; from [delaytask.Executing] it may have, its context ends within 3 s, and its result is refused.
//
// It returns [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrFinished], [delaytask.ErrNotPending] when
// only a pending task was to be cancelled, [delaytask.ErrVersionChanged], or [delaytask.ErrContended] when the task
// changed each time it was about to be changed.
func (s *Scheduler) Cancel(
	ctx context.Context, ref delaytask.Ref, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	return s.cancel(ctx, nil, ref, opts)
}

// CancelTx is Cancel inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) CancelTx(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := s.enterTx(ctx, tx); err != nil {
		return "", err
	}
	return s.cancel(ctx, tx, ref, opts)
}

func (s *Scheduler) cancel(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, opts []delaytask.ChangeOption,
) (delaytask.Status, error) {
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	c, err := request.NewCancel(opts...)
	if err != nil {
		return "", err
	}
	name.Version = c.Version
	met, err := s.engine.Cancel(ctx, tx, name, c.OnlyPending)
	if err != nil {
		return "", fmt.Errorf("cancel %v: %w", ref, err)
	}
	return delaytask.Status(met.String()), nil
}

// Reschedule makes a pending task due after a delay from now, rounded up to a millisecond, or with [delaytask.To] at a
// time. With [delaytask.Body] it replaces the body in the same step. It returns the status that it met, which is
// [delaytask.Pending].
//
// It returns [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrFinished], [delaytask.ErrNotPending] for a
// task that is executing, [delaytask.ErrInvalidDelay], [delaytask.ErrDelayTooLong], [delaytask.ErrVersionChanged], or
// [delaytask.ErrContended] when the task changed each time it was about to be changed.
func (s *Scheduler) Reschedule(
	ctx context.Context, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	return s.reschedule(ctx, nil, ref, delay, opts)
}

// RescheduleTx is Reschedule inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) RescheduleTx(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := s.enterTx(ctx, tx); err != nil {
		return "", err
	}
	return s.reschedule(ctx, tx, ref, delay, opts)
}

func (s *Scheduler) reschedule(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, delay time.Duration, opts []delaytask.ChangeOption,
) (delaytask.Status, error) {
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	move, err := request.NewReschedule(delay, request.Limits{Body: s.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	name.Version = move.Version
	met, err := s.engine.Reschedule(ctx, tx, name, move.Delay, move.At, move.Body)
	if err != nil {
		return "", fmt.Errorf("reschedule %v: %w", ref, err)
	}
	return delaytask.Status(met.String()), nil
}

// Retry runs a failed task again, now: with all its attempts, and with the errors of the old ones kept. It returns
// [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrNotFailed], or [delaytask.ErrDuplicate] when another
// unfinished task carries its key by now.
func (s *Scheduler) Retry(ctx context.Context, ref delaytask.Ref) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	name, err := nameOf(ref)
	if err != nil {
		return err
	}
	if err := s.engine.Retry(ctx, name); err != nil {
		return fmt.Errorf("retry %v: %w", ref, err)
	}
	return nil
}

// SetBody replaces the body of a pending task by what SaveDelayTask would store for the value; nil empties it. Its due
// times and the attempts so far stay as they are. It returns the status that it met, which is [delaytask.Pending]. To
// move the task in the same step, use [Scheduler.Reschedule] with [delaytask.Body].
//
// It returns [delaytask.ErrInvalidBody], [delaytask.ErrBodyTooLarge], [delaytask.ErrInvalidOption] for an option other
// than [delaytask.IfVersion], [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrFinished],
// [delaytask.ErrNotPending] for a task that is executing, [delaytask.ErrVersionChanged], or [delaytask.ErrContended]
// when the task changed each time it was about to be changed.
//
// When another process runs the task and less than two seconds are left until it is due, that process is told of the
// change. If that fails, the task may start up to 0.6 s late.
func (s *Scheduler) SetBody(
	ctx context.Context, ref delaytask.Ref, body any, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	edit, err := request.NewSetBody(body, request.Limits{Body: s.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	name.Version = edit.Version
	met, err := s.engine.SetBody(ctx, name, edit.Body)
	if err != nil {
		return "", fmt.Errorf("set the body of %v: %w", ref, err)
	}
	return delaytask.Status(met.String()), nil
}

// Bulk selects the tasks that CancelAll and RetryAll change.
type Bulk struct {
	// Filter selects the tasks. Its Status and Order may be left out, its After must be. Limit is the size of a batch:
	// 500 by default, 1,000 at most.
	Filter delaytask.Filter
	DryRun bool // count only: at most 10,000 tasks, for about 0.1 s
	// AsOf leaves out tasks that were saved, have failed, or became late, since then. Zero is now. To change what a dry
	// run has counted, take its AsOf.
	AsOf     time.Time
	Progress func(done int) // called after every batch that was changed, with the number so far; may be nil
}

// BulkResult is what CancelAll or RetryAll has done.
type BulkResult struct {
	Tasks  int       // that were changed; in a dry run, that would be
	Capped bool      // Tasks of a dry run is a lower bound
	AsOf   time.Time // the moment that bounds what was changed, by the database's clock
}

// CancelAll cancels the pending tasks that match, tag by tag in the order of their due times. Its result is also valid
// beside an error. Tasks that are executing, or that change meanwhile, are left alone.
//
// It returns [delaytask.ErrInvalidTag] and [delaytask.ErrInvalidKey], and [delaytask.ErrInvalidOption] when the filter
// asks for another status or has a cursor.
func (s *Scheduler) CancelAll(ctx context.Context, b Bulk) (BulkResult, error) {
	return s.changeAll(ctx, b, row.Pending, "cancel", s.engine.CancelWhere)
}

// RetryAll retries the failed tasks that match, tag by tag in the order in which they failed. Its result is also valid
// beside an error. A task whose key another one carries by now stays failed. It returns errors as [Scheduler.CancelAll]
// does.
func (s *Scheduler) RetryAll(ctx context.Context, b Bulk) (BulkResult, error) {
	return s.changeAll(ctx, b, row.Failed, "retry", s.engine.RetryWhere)
}

func (s *Scheduler) changeAll(
	ctx context.Context, b Bulk, from row.Status, op string,
	change func(context.Context, control.Bulk) (int, bool, error),
) (result BulkResult, err error) {
	if err := s.enter(ctx); err != nil {
		return result, err
	}
	if b.Filter.Status == "" {
		b.Filter.Status = delaytask.Status(from.String())
	}
	if b.Filter.After != "" { // the rest of a list in another order is other tasks
		return result, fmt.Errorf("%w: After: a change of all tasks that match has no pages",
			delaytask.ErrInvalidOption)
	}
	query, err := queryOf(&b.Filter, 0)
	if err != nil {
		return result, err
	}
	asOf := bound(b.AsOf)
	if asOf.IsZero() {
		reading, err := s.store.Now(ctx)
		if err != nil {
			return result, fmt.Errorf("read the database's clock: %w", err)
		}
		asOf = reading.Time
	}
	query.LateAt = asOf
	if !b.DryRun || !b.AsOf.IsZero() { // what is saved within a dry run may count
		query.CreatedBy = asOf
	}
	if from.Final() && (query.To.IsZero() || query.To > asOf) { // the due time of a final task is when it finished
		query.To = asOf + 1
	}
	n, capped, err := change(ctx, control.Bulk{Query: query, DryRun: b.DryRun, Progress: b.Progress})
	result = BulkResult{Tasks: n, Capped: capped, AsOf: asOf.Std()}
	if err != nil {
		return result, fmt.Errorf("%s tasks: %w", op, err)
	}
	return result, nil
}
