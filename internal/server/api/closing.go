package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/delaytask/delaytask/internal/wire"
)

// door counts the requests inside, and can be closed behind them.
type door struct {
	mu     sync.Mutex
	closed bool
	inside int
	empty  chan struct{} // closed when the door is and nobody is inside
}

func newDoor() *door { return &door{empty: make(chan struct{})} }

func (d *door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.inside++
	}
	return !d.closed
}

func (d *door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.closed && d.inside == 0 {
		close(d.empty)
	}
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && d.inside == 0 {
		close(d.empty)
	}
	d.closed = true
}

// Close refuses what comes from now on, and waits until all that came before has been answered. /healthz, /readyz and
// /metrics are answered on. It returns the cause of ctx when that ends first. Waiting pops end with Config.Stopping,
// not here.
func (a *API) Close(ctx context.Context) error {
	a.door.close()
	select {
	case <-a.door.empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// admitted lets requests in until Close.
func (a *API) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.door.enter() {
			w.Header().Set("Connection", "close") // the next one may meet another server
			a.refuse(w, r, problemOf(http.StatusServiceUnavailable, wire.CodeStopping, "the service is stopping; try again"))
			return
		}
		defer a.door.leave()
		next.ServeHTTP(w, r)
	})
}
