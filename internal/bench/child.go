package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/delaytask/delaytask/internal/child"
)

// order is what a process of its own is to do for a measurement.
type order struct {
	Role  string `json:"role"`
	DSN   string `json:"dsn"`
	Count int    `json:"count"` // of tasks
}

// roles run until their ctx ends, which is when the parent closes their input or dies, or until they have nothing left to do.
var roles = map[string]func(context.Context, order, *child.Teller) error{}

// Child is what the program does that [Options].Child starts: its part of a measurement.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	return child.Serve(ctx, in, out, func(ctx context.Context, o order, t *child.Teller) error {
		role := roles[o.Role]
		if role == nil {
			return fmt.Errorf("there is no role %q", o.Role)
		}
		return role(ctx, o, t)
	})
}

// startChild starts a process in a role. It tells events of one type.
func startChild[E any](ctx context.Context, r *run, o order) (*child.Process[E], error) {
	if len(r.Child) == 0 {
		return nil, errors.New("this program was not told how to start a process of its own")
	}
	return child.Start[E](ctx, o, r.Child...)
}
