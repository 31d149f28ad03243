package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// Finish completes the task that was handed out with the token. It returns [delaytask.ErrLeaseLost] when the lease has
// ended and another process took the task; nothing is changed then.
//
// The call is repeated until an answer comes. When an earlier try may have completed the task and a later one is
// refused, Finish reads the task. If it is completed in the version after the token's, this call did it. The error is
// [ErrNoAnswer] when the task cannot be read.
func (c *Client) Finish(ctx context.Context, t delaytask.Token) error {
	unclear, err := c.end(ctx, t, "finish", wire.Finish{Token: t.String()})
	if unclear && isGone(err) {
		return c.finished(ctx, t, err)
	}
	return err
}

// Fail spends the attempt, as an error of a processor does: [processor.Permanent], [processor.Snooze] and
// [processor.RetryAfter] mean the same here. A nil error is [delaytask.ErrInvalidOption]. It returns
// [delaytask.ErrLeaseLost] as Finish does. When an earlier try got no answer, that error is [ErrNoAnswer] too: the
// earlier try may have ended the lease.
func (c *Client) Fail(ctx context.Context, t delaytask.Token, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w: the failure is nil; use Finish", delaytask.ErrInvalidOption)
	}
	if snooze, ok := errors.AsType[*processor.SnoozeError](failure); ok {
		return c.release(ctx, t, snooze.After)
	}
	unclear, err := c.end(ctx, t, "fail", failOf(t, failure))
	return lostOnce(err, unclear)
}

// Release gives the task back without spending the attempt. It returns errors as Fail does.
func (c *Client) Release(ctx context.Context, t delaytask.Token) error { return c.release(ctx, t, 0) }

func (c *Client) release(ctx context.Context, t delaytask.Token, delay time.Duration) error {
	unclear, err := c.end(ctx, t, "release", wire.Release{Token: t.String(), Delay: wire.Delay(delay)})
	return lostOnce(err, unclear)
}

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for. It returns
// [delaytask.ErrLeaseLost] as Finish does, and [delaytask.ErrInvalidTTR] when ttr is not positive.
func (c *Client) Touch(ctx context.Context, t delaytask.Token, ttr time.Duration) error {
	ttr, err := request.NewTouch(ttr)
	if err != nil {
		return err
	}
	_, err = c.end(ctx, t, "touch", wire.Touch{Token: t.String(), TTR: wire.Duration(ttr)})
	return err
}

// end sends what ends or moves a lease.
func (c *Client) end(ctx context.Context, t delaytask.Token, op string, body any) (unclear bool, err error) {
	if err := c.enter(ctx); err != nil {
		return false, err
	}
	if err := t.Check(); err != nil {
		return false, err
	}
	unclear, err = c.call(ctx, leaseRequest(t, op, body))
	if err != nil {
		err = fmt.Errorf("%s task %d: %w", op, t.ID, err)
	}
	return unclear, err
}

func lostOnce(err error, unclear bool) error {
	if isGone(err) {
		return unanswered(err, unclear)
	}
	return err
}

// FinishAll completes up to 10,000 tasks with one request. There is one answer for each token, nil or what Finish would
// return. It returns no answers and [delaytask.ErrBatchTooLarge] for more, or another error when the request as a whole
// was not served. Then any of them may be completed, and calling again is safe.
func (c *Client) FinishAll(ctx context.Context, tokens []delaytask.Token) ([]error, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	return c.finishAll(ctx, tokens, c.retryFor)
}
