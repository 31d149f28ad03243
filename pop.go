package delaytask

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/processor"
)

// Popped is a task that was claimed by hand. Its holder ends it with exactly one of Finish, Fail and Release, before its lease
// ends or after a Touch; otherwise the attempt is spent and the task is handed out again. ID and Version are the lease's token:
// they end the task from any process.
type Popped struct {
	processor.Task
	scheduler *Scheduler
}

// PopOption is a setting of one Pop.
type PopOption func(*pop) error

type pop struct {
	tags  []string
	most  int
	wait  time.Duration
	waits bool // wait is set
	ttr   time.Duration
}

// mostPopped bounds what one Pop hands out.
const mostPopped = 1000

// PopMax hands out up to n tasks, 1 to 1,000; more is the same as 1,000. Default: 1. It returns [ErrInvalidOption] below 1.
func PopMax(n int) PopOption {
	return func(p *pop) error {
		if n < 1 {
			return fmt.Errorf("%w: a pop of %d tasks", ErrInvalidOption, n)
		}
		p.most = min(n, mostPopped)
		return nil
	}
}

// PopWait returns without a task after d: at once when d is 0. Without this option a Pop waits until its context ends. It returns
// [ErrInvalidOption] when d is negative.
func PopWait(d time.Duration) PopOption {
	return func(p *pop) error {
		if d < 0 {
			return fmt.Errorf("%w: a wait of %v", ErrInvalidOption, d)
		}
		p.wait, p.waits = d, true
		return nil
	}
}

// PopTTR is how long the lease lasts, whatever the task's own TTR. It returns [ErrInvalidTTR].
func PopTTR(d time.Duration) PopOption {
	return func(p *pop) (err error) {
		p.ttr, err = leaseLength(d)
		return err
	}
}

// PopAlso takes tasks of further tags as well. It returns [ErrInvalidTag].
func PopAlso(tags ...string) PopOption {
	return func(p *pop) error {
		for _, tag := range tags {
			if !processor.ValidTag(tag) {
				return fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
			}
		}
		p.tags = append(p.tags, tags...)
		return nil
	}
}

func newPop(tag string, opts []PopOption) (p pop, err error) {
	p.most = 1
	for _, opt := range append([]PopOption{PopAlso(tag)}, opts...) {
		if opt == nil {
			return p, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Pop claims due tasks of a tag by hand: it blocks until one is due, and returns the moment it is. The tag needs no processor
// here; where it has one, processor and Pops take turns. A task that nobody ends within its TTR has spent an attempt and is
// handed out again, without backoff, until its attempts are used up.
//
// It returns no task and no error when the wait of [PopWait] has passed, the context's cause when ctx has ended, and
// [ErrNotStarted] before Start.
func (s *Scheduler) Pop(ctx context.Context, tag string, opts ...PopOption) ([]*Popped, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	p, err := newPop(tag, opts)
	if err != nil {
		return nil, err
	}
	tasks, err := s.engine.Pop(ctx, engine.PopRequest{Tags: p.tags, Max: p.most, Wait: p.wait, Waits: p.waits, TTR: p.ttr})
	if err != nil {
		return nil, err
	}
	popped := make([]*Popped, len(tasks))
	for i, task := range tasks {
		popped[i] = &Popped{Task: *task, scheduler: s}
	}
	return popped, nil
}

// Finish completes the task. It returns [ErrLeaseLost] when the lease has ended and somebody else took the task; nothing is
// changed then.
func (p *Popped) Finish(ctx context.Context) error {
	return p.end(ctx, p.scheduler.engine.Finish)
}

// Release gives the task back without spending the attempt. It returns [ErrLeaseLost] as Finish does.
func (p *Popped) Release(ctx context.Context) error {
	return p.end(ctx, p.scheduler.engine.Release)
}

// Fail spends the attempt, as an error of a processor does: [processor.Permanent], [processor.Snooze] and [processor.RetryAfter]
// mean the same here. A nil error is [ErrInvalidOption]. It returns [ErrLeaseLost] as Finish does.
func (p *Popped) Fail(ctx context.Context, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w: the failure is nil; use Finish", ErrInvalidOption)
	}
	return p.end(ctx, func(ctx context.Context, id, version int64) error {
		return p.scheduler.engine.Fail(ctx, id, version, failure)
	})
}

// longestTouch is the longest TTR that there is.
const longestTouch = 24 * time.Hour

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for. It returns [ErrLeaseLost] as
// Finish does, and [ErrInvalidTTR] when ttr is not positive.
func (p *Popped) Touch(ctx context.Context, ttr time.Duration) error {
	if ttr <= 0 {
		return fmt.Errorf("%w: a touch of %v", ErrInvalidTTR, ttr)
	}
	ttr, err := leaseLength(min(ttr, longestTouch))
	if err != nil {
		return err
	}
	return p.end(ctx, func(ctx context.Context, id, version int64) error {
		return p.scheduler.engine.Touch(ctx, id, version, ttr)
	})
}

func (p *Popped) end(ctx context.Context, how func(context.Context, int64, int64) error) error {
	if err := p.scheduler.enter(ctx); err != nil {
		return err
	}
	return how(ctx, p.ID, p.Version)
}

// leaseLength checks a TTR by the rule of saves.
func leaseLength(d time.Duration) (time.Duration, error) {
	var save processor.Save
	err := processor.WithTTR(d)(&save)
	return save.TTR, err
}
