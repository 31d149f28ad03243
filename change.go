package delaytask

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// ChangeOption is a setting of Cancel and Reschedule.
type ChangeOption func(*change) error

type change struct {
	onlyPending bool
	at          time.Time
}

// OnlyPending makes Cancel leave a task alone that is executing, with [ErrNotPending]. Reschedule always does.
func OnlyPending() ChangeOption {
	return func(c *change) error {
		c.onlyPending = true
		return nil
	}
}

// To makes Reschedule move the task to a time instead of a delay; the delay must be 0 then. A time in the past means now. It
// returns [ErrInvalidTime] and [ErrDelayTooLong] as [WithTime] does, and [ErrInvalidOption] from Cancel.
func To(t time.Time) ChangeOption {
	return func(c *change) error {
		var save processor.Save
		if err := processor.WithTime(t)(&save); err != nil {
			return err
		}
		c.at = save.At
		return nil
	}
}

func newChange(opts []ChangeOption) (c change, err error) {
	for _, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Cancel ends a task that is not finished, and returns the status that it met: from [Pending] it will not start; from [Executing]
// it may have, its context ends within 3 s, and its result is refused.
//
// It returns [ErrNotFound], [ErrFinished], [ErrNotPending] when only a pending task was to be cancelled, or [ErrContended] when
// the task changed each time it was about to be changed.
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
	name, err := ref.check()
	if err != nil {
		return "", err
	}
	c, err := newChange(opts)
	if err != nil {
		return "", err
	}
	if !c.at.IsZero() {
		return "", fmt.Errorf("%w: Cancel takes no time", ErrInvalidOption)
	}
	met, err := s.engine.Cancel(ctx, tx, name, c.onlyPending)
	if err != nil {
		return "", fmt.Errorf("cancel %v: %w", ref, err)
	}
	return Status(met.String()), nil
}

// Reschedule moves the promise of a pending task to a delay from now, which it rounds up to a millisecond, or with [To] to a
// time. It returns the status that it met, which is [Pending].
//
// It returns [ErrNotFound], [ErrFinished], [ErrNotPending] for a task that is executing, [ErrInvalidDelay], [ErrDelayTooLong], or
// [ErrContended] when the task changed each time it was about to be changed.
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
	name, err := ref.check()
	if err != nil {
		return "", err
	}
	c, err := newChange(opts)
	if err != nil {
		return "", err
	}
	delay, err = checkDelay(delay, c.at)
	if err != nil {
		return "", err
	}
	met, err := s.engine.Reschedule(ctx, tx, name, delay, c.at)
	if err != nil {
		return "", fmt.Errorf("reschedule %v: %w", ref, err)
	}
	return Status(met.String()), nil
}

// checkDelay holds a reschedule to the rules of a save.
func checkDelay(delay time.Duration, at time.Time) (time.Duration, error) {
	var opts []processor.Option
	if !at.IsZero() {
		opts = append(opts, processor.WithTime(at))
	}
	save, err := processor.NewSave("reschedule", nil, delay, processor.Limits{}, opts...)
	return save.Delay, err
}

// Retry runs a failed task again, now: with all its attempts, and with the errors of the old ones kept. It returns [ErrNotFound],
// [ErrNotFailed], or [ErrDuplicate] when another unfinished task carries its key by now.
func (s *Scheduler) Retry(ctx context.Context, ref Ref) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	name, err := ref.check()
	if err != nil {
		return err
	}
	if err := s.engine.Retry(ctx, name); err != nil {
		return fmt.Errorf("retry %v: %w", ref, err)
	}
	return nil
}
