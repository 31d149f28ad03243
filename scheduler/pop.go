package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
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
	return s.core.Pop(ctx, tag, opts...)
}

// Finish completes the task. It returns [delaytask.ErrLeaseLost] when the token does not hold it any more, because its
// lease ended and another process took it, or it was ended before. Nothing is changed then. It returns
// [delaytask.ErrInvalidToken] for a token that cannot be one, and [delaytask.ErrNotFound] when there is no such task.
// After any other error the same call may be made again.
func (s *Scheduler) Finish(ctx context.Context, t delaytask.Token) error {
	return s.core.Finish(ctx, t)
}

// Release gives the task back without spending the attempt. It returns errors as Finish does.
func (s *Scheduler) Release(ctx context.Context, t delaytask.Token) error {
	return s.core.Release(ctx, t)
}

// Fail spends the attempt, as an error of a processor does: [processor.Permanent], [processor.Snooze] and
// [processor.RetryAfter] mean the same here. A nil failure is [delaytask.ErrInvalidOption]. Otherwise it returns errors
// as Finish does.
func (s *Scheduler) Fail(ctx context.Context, t delaytask.Token, failure error) error {
	return s.core.Fail(ctx, t, failure)
}

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for. It returns
// [delaytask.ErrInvalidTTR] when ttr is not positive, and otherwise errors as Finish does.
func (s *Scheduler) Touch(ctx context.Context, t delaytask.Token, ttr time.Duration) error {
	return s.core.Touch(ctx, t, ttr)
}

// FinishAll completes up to 10,000 tasks, many in one statement. There is one answer for each token, nil or what Finish
// would return; where a token stands twice the first one counts. It returns no answers and [delaytask.ErrBatchTooLarge]
// for more, and changes nothing then.
func (s *Scheduler) FinishAll(ctx context.Context, tokens []delaytask.Token) ([]error, error) {
	return s.core.FinishAll(ctx, tokens)
}
