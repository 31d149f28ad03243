package client

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/processor"
)

// worker runs the processors of the registered tags.
type worker struct {
	client   *Client
	registry processor.Registry

	polls     context.Context // ends first, with Stop
	stopPolls context.CancelFunc
	base      context.Context // of every processor; ends when the grace has ended
	interrupt context.CancelCauseFunc
	reports   context.Context // of renewals and results; ends last
	stopAll   context.CancelFunc

	finishes *batch.Coalescer[*finish]
	leases   *leases

	mu      sync.Mutex
	started bool
	shared  *poller            // of the tags without a concurrency of their own
	byTag   map[string]*poller // those that are served
	pollers sync.WaitGroup
	running sync.WaitGroup
}

func newWorker(c *Client) *worker {
	w := &worker{client: c, byTag: map[string]*poller{}}
	w.polls, w.stopPolls = context.WithCancel(context.Background())
	w.base, w.interrupt = context.WithCancelCause(context.Background())
	w.reports, w.stopAll = context.WithCancel(context.Background())
	w.shared = newPoller(w, c.concurrency)
	w.leases = newLeases(w)
	w.finishes = batch.New(batch.Config[*finish]{Flush: w.flush, MaxItems: mostFinished, Panicked: w.flushPanicked})
	return w
}

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

// serve begins to take tasks of the tag, once the worker is started.
func (w *worker) serve(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reg, known := w.registry.Lookup(tag)
	if !w.started || !known || w.byTag[tag] != nil || w.polls.Err() != nil {
		return
	}
	p := w.shared
	if reg.Concurrency > 0 {
		p = newPoller(w, reg.Concurrency)
	}
	w.byTag[tag] = p
	if rests := p.add(tag, w.leaseOf(&reg)); rests {
		w.pollers.Go(p.run)
	}
}

func (w *worker) leave(tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.byTag[tag]; p != nil {
		delete(w.byTag, tag)
		p.remove(tag)
	}
}

func (w *worker) leaseOf(reg *processor.Registration) time.Duration {
	return cmp.Or(reg.TTR, w.client.ttr)
}

func (w *worker) timeoutOf(reg *processor.Registration) time.Duration {
	if reg.NoTimeout {
		return 0
	}
	return cmp.Or(reg.Timeout, w.client.timeout)
}

// lastWait is how long a stop waits for processors whose contexts have ended, before it abandons them.
const lastWait = 5 * time.Second

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

func (w *worker) stop(ctx context.Context) error {
	w.mu.Lock() // no poller begins any more
	w.stopPolls()
	w.mu.Unlock()
	w.pollers.Wait()
	err := drain(ctx, &w.running, w.client.grace, w.interrupt, w.abandon)
	w.stopAll()
	w.leases.wg.Wait()
	_ = w.finishes.Close(context.Background()) // at once: its calls have just ended
	w.interrupt(delaytask.ErrStopping)
	return err
}

// drain waits for running tasks. When ctx or the grace has ended before them, it interrupts them, and abandons those
// that go on nevertheless.
func drain(
	ctx context.Context, running *sync.WaitGroup, grace time.Duration, interrupt context.CancelCauseFunc,
	abandon func(),
) (err error) {
	over := make(chan struct{})
	go func() {
		running.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(grace):
		err = delaytask.ErrGraceEnded
	}
	interrupt(delaytask.ErrStopping)
	select {
	case <-over:
	case <-time.After(lastWait):
		abandon()
	}
	return err
}

// abandon releases the tasks of processors that do not return.
func (w *worker) abandon() {
	ctx, cancel := context.WithTimeout(w.reports, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range w.leases.held() {
		if !a.returned.Load() {
			w.client.log.Error("a processor goes on although the client stops; its task is released",
				"task", a.token.ID, "tag", a.tag)
		}
		all.Go(func() { w.report(ctx, a.token, ending{op: opRelease}) })
	}
	all.Wait()
}
