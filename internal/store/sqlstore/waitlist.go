package sqlstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waitlist keeps a process at few connections. Processes that start together, or that find their server again together,
// would each open one for every statement of that moment, and exhaust the server. A wait is short where the server is
// quick, and behind one that is stuck a connection is opened after the bound.
type waitlist struct {
	tempo *tempo

	mu      sync.Mutex
	waiting []chan struct{} // in the order in which they came
	debt    time.Duration   // for how long some have waited since a connection was opened
	last    time.Time       // when one has waited last
}

// until returns when ready reports true, when it is time to open a connection, or when ctx ends. A calm statement has
// time at the start.
func (w *waitlist) until(ctx context.Context, calm bool, ready func() bool) {
	if w == nil || ready() {
		return
	}
	turn := make(chan struct{}, 1)
	patience := w.join(turn, calm)
	if patience <= 0 {
		return
	}
	began, opens := time.Now(), false
	defer func() { w.leave(turn, began, opens) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !ready() {
		select {
		case <-turn:
		case <-timer.C:
			opens = true
			return
		case <-ctx.Done():
			return
		}
	}
}

// join returns how long a statement waits. One after the other loses patience, and what others have waited lately
// counts: where statements wait again and again, another connection helps.
func (w *waitlist) join(turn chan struct{}, calm bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.last) >= spareFor {
		w.debt = 0
	}
	patience := w.tempo.patience(calm)
	if w.debt >= patience {
		w.debt = 0
		return 0
	}
	w.waiting = append(w.waiting, turn)
	return patience*time.Duration(len(w.waiting)) - w.debt
}

func (w *waitlist) leave(turn chan struct{}, since time.Time, opens bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other chan struct{}) bool { return other == turn })
	if w.last.After(since) {
		since = w.last // another one has waited meanwhile
	}
	w.last = time.Now()
	if w.debt += w.last.Sub(since); opens {
		w.debt = 0
	}
}

// freed tells that a connection is idle again, or may be opened.
func (w *waitlist) freed() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, turn := range w.waiting {
		select {
		case turn <- struct{}{}:
			return
		default: // it has been told
		}
	}
}
