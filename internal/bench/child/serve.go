package child

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Serve is the child's side: it reads the order from in, which the parent writes there because others can read
// arguments and a DSN may hold a password, and runs the role. The context of the role ends when the parent closes its
// end of in, or dies. It returns an error when the order cannot be read, or that of the role.
func Serve[O any](ctx context.Context, in io.Reader, out io.Writer, role func(context.Context, O, *Teller) error) error {
	var order O
	orders := json.NewDecoder(in)
	if err := orders.Decode(&order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &Teller{events: json.NewEncoder(out), let: make(chan struct{})}
	go func() {
		var word struct{}
		if orders.Decode(&word) == nil {
			close(t.let)
			_, _ = io.Copy(io.Discard, in)
		}
		cancel() // any end is the end
	}()
	return role(ctx, order, t)
}

// Teller writes events for the parent, each whole in one write. It is safe for concurrent use.
type Teller struct {
	mu     sync.Mutex
	events *json.Encoder
	let    chan struct{} // closed when the parent lets the process go
}

// Await returns when the parent lets the process go on, as several that are to begin together. It returns the cause of
// ctx when that ends before.
func (t *Teller) Await(ctx context.Context) error {
	select {
	case <-t.let:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Tell sends one event.
func (t *Teller) Tell(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.events.Encode(event) // a parent that no longer listens has closed the input too
}
