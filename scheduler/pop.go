package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

// Pop claims due tasks of a tag by hand: it blocks until one is due, and returns the moment it is. The tag needs no
// processor here; where it has one, processor and Pops take turns. A task that is not ended within its TTR has spent an
// attempt and is handed out again, without backoff, until its attempts are used up.
//
// It returns no task and no error when the wait of [delaytask.PopWait] has passed and nothing was due, or the
// database's error when that is not known. It returns the context's cause when ctx has ended, and
// [delaytask.ErrNotStarted] before Start. It returns [delaytask.ErrOverloaded] for a new tag when 10,000 others were
// popped from this process within the last 30 s.
func (s *Scheduler) Pop(ctx context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	p, err := request.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	tasks, err := s.engine.Pop(ctx, lease.PopRequest{Tags: p.Tags, Max: p.Max, Wait: p.Wait, Waits: p.Waits,
		TTR: p.TTR})
	if err != nil {
		return nil, err
	}
	popped := make([]*delaytask.Popped, len(tasks))
	for i, task := range tasks {
		popped[i] = delaytask.NewPopped(*task, s)
	}
	return popped, nil
}

// Finish completes the task. It returns [delaytask.ErrLeaseLost] when the token does not hold it any more, because its
// lease ended and another process took it, or it was ended before. Nothing is changed then. It returns
// [delaytask.ErrInvalidToken] for a token that cannot be one, and [delaytask.ErrNotFound] when there is no such task.
// After any other error the same call may be made again.
func (s *Scheduler) Finish(ctx context.Context, t delaytask.Token) error {
	return s.byToken(ctx, "finish", t, s.engine.Finish)
}

// Release gives the task back without spending the attempt. It returns errors as Finish does.
func (s *Scheduler) Release(ctx context.Context, t delaytask.Token) error {
	return s.byToken(ctx, "release", t, s.engine.Release)
}

// Fail spends the attempt, as an error of a processor does: [processor.Permanent], [processor.Snooze] and
// [processor.RetryAfter] mean the same here. A nil failure is [delaytask.ErrInvalidOption]. Otherwise it returns errors
// as Finish does.
func (s *Scheduler) Fail(ctx context.Context, t delaytask.Token, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w: the failure is nil; use Finish", delaytask.ErrInvalidOption)
	}
	return s.byToken(ctx, "fail", t, func(ctx context.Context, id, version int64) error {
		return s.engine.Fail(ctx, id, version, failure)
	})
}

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for. It returns
// [delaytask.ErrInvalidTTR] when ttr is not positive, and otherwise errors as Finish does.
func (s *Scheduler) Touch(ctx context.Context, t delaytask.Token, ttr time.Duration) error {
	ttr, err := request.NewTouch(ttr)
	if err != nil {
		return err
	}
	return s.byToken(ctx, "touch", t, func(ctx context.Context, id, version int64) error {
		return s.engine.Touch(ctx, id, version, ttr)
	})
}

func (s *Scheduler) byToken(
	ctx context.Context, what string, t delaytask.Token, how func(context.Context, int64, int64) error,
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
// would return; where a token stands twice the first one counts. It returns no answers and [delaytask.ErrBatchTooLarge]
// for more, and changes nothing then.
func (s *Scheduler) FinishAll(ctx context.Context, tokens []delaytask.Token) ([]error, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if len(tokens) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(tokens))
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
