package httpbench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// Pull are clients that take tasks by long polls and finish them, each one poll after the other.
type Pull struct {
	Tag     string
	Clients int
	Max     int           // tasks of one poll, at most
	Wait    time.Duration // of one poll
}

// Run adds to seen when each task arrived, until seen has all or the limit is over; the judge reports what is missing.
// It returns when the last task was finished.
func (p Pull) Run(
	ctx context.Context, c *Client, seen *lateness.Starts, limit time.Duration,
) (last time.Time, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	waiting, hangUp := context.WithCancel(ctx)
	defer hangUp()
	lasts := make([]time.Time, p.Clients)
	var group sync.WaitGroup
	for i := range lasts {
		group.Go(func() {
			for waiting.Err() == nil {
				n, err := p.turn(ctx, waiting, c, seen)
				if err != nil {
					fail(err)
				}
				if n > 0 {
					lasts[i] = time.Now()
				}
			}
		})
	}
	_ = seen.Wait(ctx, limit) // why it ended is the cause of ctx
	hangUp()
	group.Wait()
	for _, at := range lasts {
		if at.After(last) {
			last = at
		}
	}
	return last, context.Cause(ctx)
}

// turn polls once and finishes the tasks that it got.
func (p Pull) turn(ctx, waiting context.Context, c *Client, seen *lateness.Starts) (int, error) {
	tasks, at, err := c.Pop(waiting, p.Tag, p.Max, p.Wait)
	if waiting.Err() != nil && len(tasks) == 0 {
		return 0, nil
	}
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	for _, t := range tasks {
		seen.Add(int64(t.ID), at)
	}
	return len(tasks), c.Finish(ctx, tasks)
}

// errTask is the error of a poll that gets a task of a tag without any.
var errTask = errors.New("a task came, and none was saved")

// Wait lets clients poll for a tag that has no tasks, one poll after the other, while f runs.
func (c *Client) Wait(
	ctx context.Context, tag string, clients int, wait time.Duration, f func(context.Context) error,
) error {
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
