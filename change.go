package delaytask

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// ChangeOption is a setting of Cancel and Reschedule.
type ChangeOption = processor.ChangeOption

// OnlyPending makes Cancel leave a task alone that is executing, with [ErrNotPending]. Reschedule always does.
func OnlyPending() ChangeOption { return processor.OnlyPending() }

// To makes Reschedule move the task to a time instead of a delay; the delay must be 0 then. A time in the past means now. It
// returns [ErrInvalidTime] and [ErrDelayTooLong] as [WithTime] does, and [ErrInvalidOption] from Cancel.
func To(t time.Time) ChangeOption { return processor.To(t) }

// Body makes Reschedule replace the task's body as well, by what SaveDelayTask would store for the value; nil empties it. It
// returns [ErrInvalidBody] and [ErrBodyTooLarge] as SaveDelayTask does, and [ErrInvalidOption] from Cancel. [Scheduler.SetBody]
// replaces the body alone.
func Body(body any) ChangeOption { return processor.Body(body) }

// Cancel ends a task that is not finished, and returns the status that it met: from [Pending] it will not start; from [Executing]
// it may have, its context ends within 3 s, and its result is refused.
//
// It returns [ErrNotFound], [ErrBroken], [ErrFinished], [ErrNotPending] when only a pending task was to be cancelled, or
// [ErrContended] when the task changed each time it was about to be changed.
func (s *Scheduler) Cancel(ctx context.Context, ref Ref, opts ...ChangeOption) (Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	return s.cancel(ctx, nil, ref, opts)
}

// CancelTx is Cancel inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) CancelTx(ctx context.Context, tx Tx, ref Ref, opts ...ChangeOption) (Status, error) {
	if err := s.enterTx(ctx, tx); err != nil {
		return "", err
	}
	return s.cancel(ctx, tx, ref, opts)
}

func (s *Scheduler) cancel(ctx context.Context, tx Tx, ref Ref, opts []ChangeOption) (Status, error) {
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	c, err := processor.NewCancel(opts...)
	if err != nil {
		return "", err
	}
	met, err := s.engine.Cancel(ctx, tx, name, c.OnlyPending)
	if err != nil {
		return "", fmt.Errorf("cancel %v: %w", ref, err)
	}
	return Status(met.String()), nil
}

// Reschedule moves the promise of a pending task to a delay from now, which it rounds up to a millisecond, or with [To] to a
// time. With [Body] it replaces the body in the same step. It returns the status that it met, which is [Pending].
//
// It returns [ErrNotFound], [ErrBroken], [ErrFinished], [ErrNotPending] for a task that is executing, [ErrInvalidDelay],
// [ErrDelayTooLong], or [ErrContended] when the task changed each time it was about to be changed.
func (s *Scheduler) Reschedule(ctx context.Context, ref Ref, delay time.Duration, opts ...ChangeOption) (Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	return s.reschedule(ctx, nil, ref, delay, opts)
}

// RescheduleTx is Reschedule inside the caller's transaction: it holds if and only if the transaction commits.
func (s *Scheduler) RescheduleTx(
	ctx context.Context, tx Tx, ref Ref, delay time.Duration, opts ...ChangeOption,
) (Status, error) {
	if err := s.enterTx(ctx, tx); err != nil {
		return "", err
	}
	return s.reschedule(ctx, tx, ref, delay, opts)
}

func (s *Scheduler) reschedule(ctx context.Context, tx Tx, ref Ref, delay time.Duration, opts []ChangeOption) (Status, error) {
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	move, err := processor.NewReschedule(delay, processor.Limits{Body: s.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	met, err := s.engine.Reschedule(ctx, tx, name, move.Delay, move.At, move.Body)
	if err != nil {
		return "", fmt.Errorf("reschedule %v: %w", ref, err)
	}
	return Status(met.String()), nil
}

// Retry runs a failed task again, now: with all its attempts, and with the errors of the old ones kept. It returns [ErrNotFound],
// [ErrBroken], [ErrNotFailed], or [ErrDuplicate] when another unfinished task carries its key by now.
func (s *Scheduler) Retry(ctx context.Context, ref Ref) error {
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
