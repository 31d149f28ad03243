package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/store/sabotage"
)

// dispatcher keeps the rows that were claimed ahead of their time and starts each at its exact due time: when the database's
// clock has reached it for certain, never before.
type dispatcher struct {
	*core
	begin func(*attempt)

	mu    sync.Mutex
	early runQueue
	wake  chan struct{}
}

func newDispatcher(c *core, begin func(*attempt)) *dispatcher {
	return &dispatcher{core: c, begin: begin, wake: make(chan struct{}, 1)}
}

// add takes a claimed row. What is due already starts at once.
func (d *dispatcher) add(r *attempt) {
	if wait, ok := d.clock.Until(r.due); ok && wait <= 0 || sabotage.Off(sabotage.Early) {
		d.begin(r)
		return
	}
	d.mu.Lock()
	heap.Push(&d.early, r)
	first := d.early[0] == r
	d.mu.Unlock()
	if first {
		signal(d.wake)
	}
}

// loop waits by a timer, and for the last moment by a nap: the runtime's timers fire up to a millisecond late.
func (d *dispatcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		wait := d.startDue()
		if d.cfg.Nap != nil {
			if wait <= clock.NapLimit {
				d.cfg.Nap(wait)
				continue
			}
			wait -= clock.NapLimit
		}
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-d.wake:
		case <-ctx.Done():
		}
		alarm.Stop()
	}
}

// startDue starts what is due and returns how long it is until the next one.
func (d *dispatcher) startDue() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.early) > 0 {
		wait, anchored := d.clock.Until(d.early[0].due)
		if !anchored {
			return unanchoredWait
		}
		if wait > 0 {
			return min(wait, insurance)
		}
		d.begin(heap.Pop(&d.early).(*attempt))
	}
	return time.Hour
}

// runQueue orders claimed rows by due time.
type runQueue []*attempt

func (q runQueue) Len() int           { return len(q) }
func (q runQueue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q runQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *runQueue) Push(x any)        { *q = append(*q, x.(*attempt)) }

func (q *runQueue) Pop() any {
	old := *q
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return r
}

// signal leaves a message in a channel of capacity one; a message that is already there says the same.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
