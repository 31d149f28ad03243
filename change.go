package delaytask

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
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

// Pause stops all nodes from starting tasks of the tag, within 2 s; what runs goes on. Tasks that fall due meanwhile wait.
func (s *Scheduler) Pause(ctx context.Context, tag string) error {
	return s.setPause(ctx, tag, "pause", s.engine.Pause)
}

// Resume ends a pause on all nodes, within 2 s. Tasks that fell due meanwhile start at once.
func (s *Scheduler) Resume(ctx context.Context, tag string) error {
	return s.setPause(ctx, tag, "resume", s.engine.Resume)
}

func (s *Scheduler) setPause(ctx context.Context, tag, op string, set func(context.Context, string) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if !processor.ValidTag(tag) {
		return fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
	}
	if err := set(ctx, tag); err != nil {
		return fmt.Errorf("%s tag %s: %w", op, tag, err)
	}
	return nil
}

// Bulk says which tasks CancelAll and RetryAll change, and how.
type Bulk struct {
	Filter   Filter         // its Status may be left out; Limit is the size of a batch, default 500
	DryRun   bool           // count only
	Progress func(done int) // called after every batch with the number so far; may be nil
}

// CancelAll cancels the pending tasks that match, batch by batch, and returns how many it cancelled, also beside an error. Tasks
// that are executing, or that change meanwhile, are left alone. It returns [ErrInvalidOption] when the filter asks for another
// status.
func (s *Scheduler) CancelAll(ctx context.Context, b Bulk) (int, error) {
	return s.changeAll(ctx, b, "cancel", s.engine.CancelWhere)
}

// RetryAll retries the failed tasks that match, batch by batch, and returns how many it retried, also beside an error. A task
// whose key another one carries by now stays failed. It returns [ErrInvalidOption] when the filter asks for another status.
func (s *Scheduler) RetryAll(ctx context.Context, b Bulk) (int, error) {
	return s.changeAll(ctx, b, "retry", s.engine.RetryWhere)
}

func (s *Scheduler) changeAll(
	ctx context.Context, b Bulk, op string, change func(context.Context, engine.Bulk) (int, error),
) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	filter, err := b.Filter.stored(0)
	if err != nil {
		return 0, err
	}
	n, err := change(ctx, engine.Bulk{Filter: filter, DryRun: b.DryRun, Progress: b.Progress})
	if err != nil {
		return n, fmt.Errorf("%s tasks: %w", op, err)
	}
	return n, nil
}
