package plan

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

type guard struct{}

// WithGuard returns a context. Calls with it read or change a schedule that exists only when check returns nil for its
// tag. A change is checked against the version that it replaces, so another caller cannot give the schedule a new tag
// between check and change.
func WithGuard(ctx context.Context, check func(tag string) error) context.Context {
	return context.WithValue(ctx, guard{}, check)
}

func guarded(ctx context.Context, s *row.Schedule) error {
	check, ok := ctx.Value(guard{}).(func(tag string) error)
	if !ok {
		return nil
	}
	return check(s.Tag)
}
