package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
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
	return s.core.Cancel(ctx, nil, ref, opts...)
}

// CancelTx is Cancel inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) CancelTx(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := core.CheckTx(tx); err != nil {
		return "", err
	}
	return s.core.Cancel(ctx, tx, ref, opts...)
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
	return s.core.Reschedule(ctx, nil, ref, delay, opts...)
}

// RescheduleTx is Reschedule inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) RescheduleTx(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := core.CheckTx(tx); err != nil {
		return "", err
	}
	return s.core.Reschedule(ctx, tx, ref, delay, opts...)
}

// Retry runs a failed task again, now: with all its attempts, and with the errors of the old ones kept. It returns
// [delaytask.ErrNotFound], [delaytask.ErrBroken], [delaytask.ErrNotFailed], or [delaytask.ErrDuplicate] when another
// unfinished task carries its key by now.
func (s *Scheduler) Retry(ctx context.Context, ref delaytask.Ref) error {
	return s.core.Retry(ctx, ref)
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
	return s.core.SetBody(ctx, ref, body, opts...)
}

// CancelAll cancels the pending tasks that match, tag by tag in the order of their due times. Its result is also valid
// beside an error. Tasks that are executing, or that change meanwhile, are left alone.
//
// It returns [delaytask.ErrInvalidTag] and [delaytask.ErrInvalidKey], and [delaytask.ErrInvalidOption] when the filter
// asks for another status or has a cursor.
func (s *Scheduler) CancelAll(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	return s.core.CancelAll(ctx, b)
}

// RetryAll retries the failed tasks that match, tag by tag in the order in which they failed. Its result is also valid
// beside an error. A task whose key another one carries by now stays failed. It returns errors as [Scheduler.CancelAll]
// does.
func (s *Scheduler) RetryAll(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	return s.core.RetryAll(ctx, b)
}
