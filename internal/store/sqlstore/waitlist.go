package sqlstore

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waitlist keeps a process at few connections. Processes that start together, or that find their server again together,
// would each open one for every statement of that moment, and exhaust the server. A wait is short where the server is
// quick, and no statement waits for longer than the bound behind one that is stuck.
type waitlist struct {
	*tempo

	mu      sync.Mutex
	waiting []chan struct{} // in the order in which they came
}

// until returns when ready reports true, when it is time to open a connection, or when ctx ends.
func (w *waitlist) until(ctx context.Context, ready func() bool) {
	if w == nil || ready() {
		return
	}
	turn := make(chan struct{}, 1)
	w.mu.Lock()
	w.waiting = append(w.waiting, turn)
	// One after the other loses it.
	patience := min(w.patience()*time.Duration(len(w.waiting)), 2*longestWait)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if i := slices.Index(w.waiting, turn); i >= 0 {
			w.waiting = slices.Delete(w.waiting, i, i+1)
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !ready() {
		select {
		case <-turn:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
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
