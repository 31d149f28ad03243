package client

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// Use puts middleware around the processors of all tags, registered before or after. It goes outside of the middleware
// that a tag is registered with. The first one is outermost. A later call adds inside.
//
// It returns [delaytask.ErrStarted] after Start, [delaytask.ErrInvalidOption] when one is nil, and
// [delaytask.ErrNilProcessor] when one returns nil.
func (c *Client) Use(mw ...processor.Middleware) error {
	if c.closed.Load() {
		return delaytask.ErrClosed
	}
	w := c.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return delaytask.ErrStarted
	}
	return w.registry.Use(mw...)
}

// Register gives a tag its processor in this process. It may be called before and after Start.
//
// [processor.Concurrency] gives the tag slots of its own, besides those that all other tags share ([WithConcurrency]).
// [processor.TTR] is the length of its leases here, whatever its tasks were saved with. [processor.MaxAttempts] is
// refused with [delaytask.ErrInvalidOption]: the service counts attempts, so give the number when the task is saved.
//
// It returns [delaytask.ErrInvalidTag], [delaytask.ErrNilProcessor], [delaytask.ErrTagRegistered] when the tag has a
// processor already, or the error of an option.
func (c *Client) Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
	if c.closed.Load() {
		return delaytask.ErrClosed
	}
	opts = append(opts[:len(opts):len(opts)], noMaxAttempts)
	if err := c.worker.registry.Register(tag, p, opts...); err != nil {
		return err
	}
	c.worker.serve(tag)
	return nil
}

func noMaxAttempts(r *processor.Registration) error {
	if r.MaxAttempts != 0 {
		return fmt.Errorf("%w: the service counts attempts: give MaxAttempts when the task is saved",
			delaytask.ErrInvalidOption)
	}
	return nil
}

// Start begins to run tasks. It does not block, and does nothing when called again. If the service is away or refuses
// the token, that is logged and tried again.
//
// A ctx that ends later stops nothing: call [Client.Stop]. It returns the cause of a ctx that has ended before, and
// starts nothing then. It returns [delaytask.ErrClosed] after Stop.
func (c *Client) Start(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	w := c.worker
	w.mu.Lock()
	again := w.started
	w.started = true
	w.mu.Unlock()
	if again {
		return nil
	}
	w.leases.start()
	for _, tag := range w.registry.Tags() {
		w.serve(tag)
	}
	return nil
}

// Unregister takes the processor of a tag away, and reports whether it had one: this process takes no more tasks of the
// tag. What runs goes on. The tag may be registered again.
func (c *Client) Unregister(tag string) bool {
	had := c.worker.registry.Unregister(tag)
	c.worker.leave(tag)
	return had
}

// Stop ends the client, started or not. It takes no more tasks, and gives back at once what it has not begun. Running
// tasks may finish within the grace ([WithStopGrace]) or until ctx ends, whichever comes first. The others are released
// without spending an attempt. Calls after the first wait for it and return the same. A task that the service hands out
// while the last poll is broken off comes back when its lease ends.
//
// It returns the cause of ctx when that ended first, and [delaytask.ErrGraceEnded] when the grace did: tasks were
// released then, which is no fault.
func (c *Client) Stop(ctx context.Context) error {
	if ctx == nil {
		return delaytask.ErrNilContext
	}
	c.stop.Do(func() {
		c.ended = c.worker.stop(ctx)
		c.closed.Store(true) // not before: what still runs may save what follows from it
		c.idle()
	})
	return c.ended
}
