package delaytask

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/processor"
)

// Popped is a task that was claimed by hand. Its holder ends it with exactly one of Finish, Fail and Release, before its
// lease ends or after a Touch; otherwise the attempt is spent and the task is handed out again. Its [Token] does the same
// from any process.
type Popped = processor.Popped

// PopOption is a setting of one Pop.
type PopOption = processor.PopOption

// PopMax hands out up to n tasks, 1 to 1,000; more is the same as 1,000. Default: 1. A Pop hands out at most 16 MiB of bodies, though
// at least one task. It returns [ErrInvalidOption] below 1.
func PopMax(n int) PopOption { return processor.PopMax(n) }

// PopWait returns without a task after d: at once when d is 0. Without this option a Pop waits until its context ends. It returns
// [ErrInvalidOption] when d is negative.
func PopWait(d time.Duration) PopOption { return processor.PopWait(d) }

// PopTTR is how long the lease lasts, whatever the task's own TTR. It returns [ErrInvalidTTR].
func PopTTR(d time.Duration) PopOption { return processor.PopTTR(d) }

// PopAlso takes tasks of further tags as well, of up to 100 in all. It returns [ErrInvalidTag], and [ErrInvalidOption] for more.
func PopAlso(tags ...string) PopOption { return processor.PopAlso(tags...) }

// Pop claims due tasks of a tag by hand: it blocks until one is due, and returns the moment it is. The tag needs no processor
// here; where it has one, processor and Pops take turns. A task that nobody ends within its TTR has spent an attempt and is
// handed out again, without backoff, until its attempts are used up.
//
// It returns no task and no error when the wait of [PopWait] has passed and nothing was due, the database's error
// when that cannot be known, the context's cause when ctx has ended, [ErrNotStarted] before Start, and
// [ErrOverloaded] for a new tag when 10,000 others were popped from this process within the last 30 s.
func (s *Scheduler) Pop(ctx context.Context, tag string, opts ...PopOption) ([]*Popped, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	p, err := processor.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	tasks, err := s.engine.Pop(ctx, engine.PopRequest{Tags: p.Tags, Max: p.Max, Wait: p.Wait, Waits: p.Waits, TTR: p.TTR})
	if err != nil {
		return nil, err
	}
	popped := make([]*Popped, len(tasks))
	for i, task := range tasks {
		popped[i] = processor.NewPopped(*task, s)
	}
	return popped, nil
}
