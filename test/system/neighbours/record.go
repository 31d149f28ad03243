package main

import (
	"sync"
	"time"

	"github.com/delaytask/delaytask"
)

// sample is one call or task: at is when it was to happen, done when it had happened.
type sample struct {
	tag      int
	at, done time.Time
	failed   bool
}

// ledger has what the load has seen.
type ledger struct {
	mu                             sync.Mutex
	saved, begun, finished, pulses []sample
	again                          [tags]int           // starts of a task that had started before
	calls                          map[*call]struct{}  // under way
	tasks                          map[int64]time.Time // saved and not complete, with the moment of the call
	early                          map[int64]bool      // complete before the call returned
	seen                           map[int64]bool      // started
	attempts                       map[int64]sample    // whose processor has returned
}

func newLedger() *ledger {
	return &ledger{calls: map[*call]struct{}{}, tasks: map[int64]time.Time{}, early: map[int64]bool{},
		seen: map[int64]bool{}, attempts: map[int64]sample{}}
}

// call is a save under way.
type call struct {
	*ledger
	sample
}

func (r *ledger) saves(tag int) *call {
	c := &call{r, sample{tag: tag, at: time.Now()}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c] = struct{}{}
	return c
}

func (c *call) returned(results []delaytask.SaveResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, c)
	c.done, c.failed = time.Now(), err != nil
	c.saved = append(c.saved, c.sample)
	for _, result := range results {
		switch {
		case result.Err != nil: // the caller was told, and knows of no task
		case c.early[result.ID]:
			delete(c.early, result.ID)
		default:
			c.tasks[result.ID] = c.at
		}
	}
}

func (r *ledger) started(task *delaytask.Task, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tag := int(task.Tag[len(task.Tag)-1] - '0')
	if r.seen[task.ID] {
		r.again[tag]++
		return
	}
	r.seen[task.ID] = true
	done := time.Now()
	r.begun = append(r.begun, sample{tag: tag, at: done.Add(task.Expected.Sub(now)), done: done})
	r.attempts[task.ID] = sample{tag: tag}
}

// ended notes that the work of an attempt is done. The first time counts: later attempts are the process's own delay.
func (r *ledger) ended(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.attempts[id]; ok && a.at.IsZero() {
		a.at = time.Now()
		r.attempts[id] = a
	}
}

func (r *ledger) completed(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.attempts[id]; ok {
		delete(r.attempts, id)
		a.done = time.Now()
		r.finished = append(r.finished, a)
	}
	if _, known := r.tasks[id]; known {
		delete(r.tasks, id)
	} else {
		r.early[id] = true
	}
}

func (r *ledger) pulse(since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulses = append(r.pulses, sample{at: since, done: time.Now()})
}

// open returns how many calls and tasks from before then are under way.
func (r *ledger) open(then time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.calls {
		if c.at.Before(then) {
			n++
		}
	}
	for _, at := range r.tasks {
		if at.Before(then) {
			n++
		}
	}
	return n
}
