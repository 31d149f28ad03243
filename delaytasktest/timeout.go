package delaytasktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// patience is how long, by the machine's clock, an attempt goes on while nothing moves the test's clock. Then that goes
// on to the attempt's timeout: a processor that waits for the end of its context does not hang the test. In a bubble of
// testing/synctest no real time passes.
const patience = 5 * time.Second

// timeout is a context that ends by the test's clock. The context within ends first, with the cause, which
// [context.Cause] finds there. Err is [context.DeadlineExceeded], as in a context of [context.WithTimeoutCause].
type timeout struct {
	context.Context
	over     time.Time // on the test's clock
	deadline time.Time // on the machine's, which calls of other packages go by
	cause    error
	end      context.CancelCauseFunc // of the context within
	done     chan struct{}
	close    func() // done, once
}

// withTimeout is [context.WithTimeoutCause] on this clock.
func (c *clock) withTimeout(
	parent context.Context, d time.Duration, cause error,
) (context.Context, context.CancelFunc) {
	o := &timeout{deadline: time.Now().Add(d), cause: cause, done: make(chan struct{})}
	o.Context, o.end = context.WithCancelCause(parent)
	o.close = sync.OnceFunc(func() { close(o.done) })
	context.AfterFunc(o.Context, o.close)
	c.mu.Lock()
	defer c.mu.Unlock()
	o.over = c.at.Add(d)
	c.timeouts = append(c.timeouts, o)
	hangs := time.AfterFunc(patience, func() { c.forward(o.over) })
	return o, func() {
		hangs.Stop()
		o.end(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timeouts = slices.DeleteFunc(c.timeouts, func(other *timeout) bool { return other == o })
	}
}

func (o *timeout) Deadline() (time.Time, bool) { return o.deadline, true }
func (o *timeout) Done() <-chan struct{}       { return o.done }

func (o *timeout) Err() error {
	if o.Context.Err() != nil && errors.Is(context.Cause(o.Context), o.cause) {
		return context.DeadlineExceeded
	}
	return o.Context.Err()
}
