package store

import "context"

// Departure is told how far a write has come. Until Sends is called after Waits, nothing has left this process. A store
// that calls neither may have sent the write at any moment.
type Departure struct {
	Waits func()       // the write waits for a connection
	Sends func() error // it is about to be sent; an error keeps it from that and is its answer
}

type departureKey struct{}

// WithDeparture returns a context whose next write is watched.
func WithDeparture(ctx context.Context, d Departure) context.Context {
	return context.WithValue(ctx, departureKey{}, d)
}

// DepartureOf returns what watches a write. Its functions can always be called.
func DepartureOf(ctx context.Context) Departure {
	if d, ok := ctx.Value(departureKey{}).(Departure); ok {
		return d
	}
	return Departure{Waits: func() {}, Sends: func() error { return nil }}
}
