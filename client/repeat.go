package client

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// pauses spread the repetitions of many clients after an outage.
var pauses = processor.Exponential(50*time.Millisecond, 2*time.Second, 0.5)

// call sends the request, and repeats it while that can help and cannot harm, as long as patience lasts. unclear says that
// a try may have been carried out whose answer is missing.
func (c *Client) call(ctx context.Context, r *request) (unclear bool, err error) {
	return c.repeat(ctx, r, c.patience)
}

func (c *Client) repeat(ctx context.Context, r *request, patience time.Duration) (unclear bool, err error) {
	end := time.Now().Add(patience)
	for n := 1; ; n++ {
		err = c.try(ctx, r)
		if err == nil {
			return unclear, nil
		}
		done := mayBeDone(err)
		if done {
			unclear = true
		}
		wait := pauses(n)
		if e, ok := errors.AsType[*Error](err); ok {
			wait = max(wait, e.retryAfter)
		}
		if !mayPass(err) || done && !r.again || time.Now().Add(wait).After(end) || !sleep(ctx, wait) {
			return unclear, err
		}
	}
}

// sleep reports whether it could wait so long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
