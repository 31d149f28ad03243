package client

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

// Pop takes due tasks of a tag: it blocks until one is due, and returns the moment it is. A task that is not ended
// within its TTR has spent an attempt and is handed out again.
//
// It returns no task and no error when the wait of [delaytask.PopWait] has passed. It returns the context's cause when
// ctx has ended, and [ErrNoAnswer] when the service is away for longer than the client's retry time; tasks that it
// handed out meanwhile come back when their leases end.
func (c *Client) Pop(ctx context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	p, err := request.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; {
		wait := pollWait
		if p.Waits {
			wait = max(min(wait, p.Wait-time.Since(begun)), 0)
		}
		r, reply := popRequest(&p, wait)
		if _, err := c.call(ctx, r); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
			return nil, fmt.Errorf("pop: %w", err)
		}
		popped, err := c.popped(reply)
		if err != nil || len(popped) > 0 || p.Waits && time.Since(begun) >= p.Wait {
			return popped, err
		}
	}
}

func (c *Client) popped(reply *wire.PopReply) ([]*delaytask.Popped, error) {
	tasks, err := handedOut(reply)
	var all []*delaytask.Popped
	for _, task := range tasks {
		all = append(all, delaytask.NewPopped(*task, c))
	}
	return all, err
}
