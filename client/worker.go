package client

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
)

// worker runs the processors of the registered tags.
type worker struct {
	*runner

	polls     context.Context // ends first, with Stop
	stopPolls context.CancelFunc
	stopAll   context.CancelFunc // ends renewals and results, last

	mu      sync.Mutex
	started bool
	shared  *poller            // of the tags without a concurrency of their own
	byTag   map[string]*poller // those that are served
	pollers sync.WaitGroup
}

func newWorker(s *service) *worker {
	all, stopAll := context.WithCancel(context.Background())
	w := &worker{runner: newRunner(all, s), stopAll: stopAll, byTag: map[string]*poller{}}
	w.polls, w.stopPolls = context.WithCancel(context.Background())
	w.shared = newPoller(w.polls, w.runner, s.concurrency)
	return w
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
		p = newPoller(w.polls, w.runner, reg.Concurrency)
	}
	w.byTag[tag] = p
	if rests := p.add(tag, w.service.leaseOf(&reg)); rests {
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

// lastWait is how long a stop waits for processors whose contexts have ended, before it abandons them.
const lastWait = 5 * time.Second

func (w *worker) stop(ctx context.Context) error {
	w.mu.Lock() // no poller begins any more
	w.stopPolls()
	w.mu.Unlock()
	w.pollers.Wait()
	err := drain(ctx, &w.running, w.service.grace, w.interrupt, w.abandon)
	w.stopAll()
	w.leases.wg.Wait()
	_ = w.reporter.finishes.Close(context.Background()) // at once: its calls have just ended
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
