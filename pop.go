package delaytask

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Popped is a task that was claimed by hand. Its holder ends it with exactly one of Finish, Fail and Release, before
// its lease ends or after a Touch; otherwise the attempt is spent and the task is handed out again. Its [Token] does
// the same from any process.
type Popped = processor.Popped

// PopOption is a setting of one Pop.
type PopOption = processor.PopOption

// PopMax hands out up to n tasks, 1 to 1,000; more is the same as 1,000. Default: 1. A Pop hands out at most 16 MiB of
// bodies, though at least one task. It returns [ErrInvalidOption] below 1.
func PopMax(n int) PopOption { return processor.PopMax(n) }

// PopWait returns without a task after d: at once when d is 0. Without this option a Pop waits until its context ends.
// It returns [ErrInvalidOption] when d is negative.
func PopWait(d time.Duration) PopOption { return processor.PopWait(d) }

// PopTTR is how long the lease lasts, whatever the task's own TTR. It returns [ErrInvalidTTR].
func PopTTR(d time.Duration) PopOption { return processor.PopTTR(d) }

// PopAlso takes tasks of further tags as well, of up to 100 in all. It returns [ErrInvalidTag], and [ErrInvalidOption]
// for more.
func PopAlso(tags ...string) PopOption { return processor.PopAlso(tags...) }

// Pop claims due tasks of a tag by hand: it blocks until one is due, and returns the moment it is. The tag needs no
// processor here; where it has one, processor and Pops take turns. A task that is not ended within its TTR has spent an
// attempt and is handed out again, without backoff, until its attempts are used up.
//
// It returns no task and no error when the wait of [PopWait] has passed and nothing was due, or the database's error
// when that is not known. It returns the context's cause when ctx has ended, and [ErrNotStarted] before Start. It
// returns [ErrOverloaded] for a new tag when 10,000 others were popped from this process within the last 30 s.
func (s *Scheduler) Pop(ctx context.Context, tag string, opts ...PopOption) ([]*Popped, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	p, err := processor.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	tasks, err := s.engine.Pop(ctx, lease.PopRequest{Tags: p.Tags, Max: p.Max, Wait: p.Wait, Waits: p.Waits,
		TTR: p.TTR})
	if err != nil {
		return nil, err
	}
	popped := make([]*Popped, len(tasks))
	for i, task := range tasks {
		popped[i] = processor.NewPopped(*task, s)
	}
	return popped, nil
}

// Token is the lease token: a task that was popped, or whose processor has returned [processor.HandOver], is ended with
// it by any process that shares the database. Once the lease has passed on, every call with it returns [ErrLeaseLost]
// and changes nothing. A processor's token is its Task.ID and Task.Version, and ends the task also while the processor
// runs.
type Token = processor.Token

// ParseToken reads what [Token.String] has written, and nothing else. It returns [ErrInvalidToken].
func ParseToken(s string) (Token, error) { return processor.ParseToken(s) }

// Finish completes the task. It returns [ErrLeaseLost] when the token does not hold it any more, because its lease
// ended and another process took it, or it was ended before. Nothing is changed then. It returns [ErrInvalidToken] for
// a token that cannot be one, and [ErrNotFound] when there is no such task. After any other error the same call may be
// made again.
func (s *Scheduler) Finish(ctx context.Context, t Token) error {
	return s.byToken(ctx, "finish", t, s.engine.Finish)
}

// Release gives the task back without spending the attempt. It returns errors as Finish does.
func (s *Scheduler) Release(ctx context.Context, t Token) error {
	return s.byToken(ctx, "release", t, s.engine.Release)
}

// Fail spends the attempt, as an error of a processor does: [processor.Permanent], [processor.Snooze] and
// [processor.RetryAfter] mean the same here. A nil failure is [ErrInvalidOption]. Otherwise it returns errors as Finish
// does.
func (s *Scheduler) Fail(ctx context.Context, t Token, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w: the failure is nil; use Finish", ErrInvalidOption)
	}
	return s.byToken(ctx, "fail", t, func(ctx context.Context, id, version int64) error {
		return s.engine.Fail(ctx, id, version, failure)
	})
}

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for. It returns
// [ErrInvalidTTR] when ttr is not positive, and otherwise errors as Finish does.
func (s *Scheduler) Touch(ctx context.Context, t Token, ttr time.Duration) error {
	ttr, err := processor.NewTouch(ttr)
	if err != nil {
		return err
	}
	return s.byToken(ctx, "touch", t, func(ctx context.Context, id, version int64) error {
		return s.engine.Touch(ctx, id, version, ttr)
	})
}

func (s *Scheduler) byToken(
	ctx context.Context, what string, t Token, how func(context.Context, int64, int64) error,
) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if err := how(ctx, t.ID, t.Version); err != nil {
		return fmt.Errorf("%s task %d: %w", what, t.ID, err)
	}
	return nil
}

// FinishAll completes up to 10,000 tasks, many in one statement. There is one answer for each token, nil or what Finish
// would return; where a token stands twice the first one counts. It returns no answers and [ErrBatchTooLarge] for more,
// and changes nothing then.
func (s *Scheduler) FinishAll(ctx context.Context, tokens []Token) ([]error, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if len(tokens) > processor.MaxItems {
		return nil, fmt.Errorf("%w: got %d", ErrBatchTooLarge, len(tokens))
	}
	answers := make([]error, len(tokens))
	var refs []row.Ref
	var places []int // of the refs in the answers
	for i, t := range tokens {
		if answers[i] = t.Check(); answers[i] == nil {
			refs, places = append(refs, row.Ref{ID: t.ID, Version: t.Version}), append(places, i)
		}
	}
	for i, err := range s.engine.FinishAll(ctx, refs) {
		if err != nil {
			answers[places[i]] = fmt.Errorf("finish task %d: %w", refs[i].ID, err)
		}
	}
	return answers, nil
}
