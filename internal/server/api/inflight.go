package api

import "sync"

// inflight counts requests in flight, and can be closed behind them.
type inflight struct {
	mu     sync.Mutex
	closed bool
	inside int
	empty  chan struct{} // closed when no request is in flight after close
}

func newInflight() *inflight { return &inflight{empty: make(chan struct{})} }

func (f *inflight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.inside++
	}
	return !f.closed
}

func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside--
	if f.closed && f.inside == 0 {
		close(f.empty)
	}
}

func (f *inflight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.inside == 0 {
		close(f.empty)
	}
	f.closed = true
}
