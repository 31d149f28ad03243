package store

import "context"

type apartKey struct{}

// Apart returns a context whose writes take connections of their own. A write that waits there for another
// transaction's lock holds up no write of any other context.
func Apart(ctx context.Context) context.Context { return context.WithValue(ctx, apartKey{}, true) }

// IsApart reports whether ctx is one of [Apart].
func IsApart(ctx context.Context) bool { return ctx.Value(apartKey{}) != nil }
