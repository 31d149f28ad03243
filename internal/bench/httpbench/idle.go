package httpbench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errTask is what nobody expects who waits for nothing.
var errTask = errors.New("a task came, and none was saved")

// Wait lets clients poll for a tag that has no tasks, one poll after the other, while f runs.
func (c *Client) Wait(ctx context.Context, tag string, clients int, wait time.Duration, f func(context.Context) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	waiting, hangUp := context.WithCancel(ctx)
	defer hangUp()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for waiting.Err() == nil {
				tasks, _, err := c.Pop(waiting, tag, 1, wait)
				if len(tasks) > 0 {
					err = errTask
				}
				if err != nil && waiting.Err() == nil {
					fail(err)
				}
			}
		})
	}
	if err := f(ctx); err != nil {
		fail(err)
	}
	hangUp()
	group.Wait()
	return context.Cause(ctx)
}
