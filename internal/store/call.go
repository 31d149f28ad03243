package store

import "context"

type (
	apartKey     struct{}
	departureKey struct{}
)

// Apart returns a context whose writes take connections of their own. A write that waits there for another
// transaction's lock holds up no write of any other context.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, true) }

// IsApart reports whether ctx is one of [Apart].
func IsApart(ctx context.Context) bool { return ctx.Value(apartKey{}) != nil }

// Departure is told how far a write has come. Until Sends is called after Waits, nothing has left this process. A store
// that calls neither may have sent the write at any moment.
type Departure struct {
	Waits func()       // the write waits for a connection
	Sends func() error // it is about to be sent; an error keeps it from that and is its answer
}

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
