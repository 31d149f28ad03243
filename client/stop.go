package client

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// lastWait is how long a stop waits for processors whose contexts it has ended, before it leaves them behind.
const lastWait = 5 * time.Second

// Stop ends the client, started or not: it takes no more tasks, gives back at once what it has not begun, lets running
// tasks finish within the grace ([WithStopGrace]) or until ctx ends, whichever comes first, and releases the others without
// spending an attempt. Calls after the first wait for it and return the same. A task that the service hands out in the very
// moment in which the last poll is broken off comes back when its lease ends.
//
// It returns the cause of ctx when that ended first, and [processor.ErrGraceEnded] when the grace did: tasks were released
// then, which is no fault.
func (c *Client) Stop(ctx context.Context) error {
	if ctx == nil {
		return processor.ErrNilContext
	}
	c.stop.Do(func() {
		c.ended = c.worker.stop(ctx)
		c.closed.Store(true) // not before: what still runs may save what follows from it
		c.idle()
	})
	return c.ended
}

func (w *worker) stop(ctx context.Context) error {
	w.mu.Lock() // no line begins any more
	w.stopPolls()
	w.mu.Unlock()
	w.lines.Wait()

	over := make(chan struct{})
	go func() {
		w.running.Wait()
		close(over)
	}()
	err := w.await(ctx, over)
	if err != nil {
		w.interrupt(processor.ErrStopping)
		last := time.NewTimer(lastWait)
		defer last.Stop()
		select {
		case <-over:
		case <-last.C:
			w.abandon()
		}
	}
	w.stopAll()
	w.leases.wg.Wait()
	_ = w.finishes.Close(context.Background()) // at once: its calls have just ended
	w.interrupt(processor.ErrStopping)
	return err
}

// await waits for what runs.
func (w *worker) await(ctx context.Context, over <-chan struct{}) error {
	grace := time.NewTimer(w.grace)
	defer grace.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-grace.C:
		return processor.ErrGraceEnded
	}
}

// abandon releases the tasks of processors that do not return.
func (w *worker) abandon() {
	ctx, cancel := context.WithTimeout(w.reports, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range w.leases.held() {
		if !a.returned.Load() {
			w.log.Error("a processor goes on although the client stops; its task is released", "task", a.token.ID, "tag", a.tag)
		}
		all.Go(func() { w.report(ctx, a.token, ending{op: opRelease}) })
	}
	all.Wait()
}
