package main

import (
	"context"
	"fmt"
	"os"

	"github.com/delaytask/delaytask/internal/child"
)

// childCommand is the argument that makes this program a child.
const childCommand = "child"

// order is what a child is to do.
type order struct {
	Role  string `json:"role"`
	DSN   string `json:"dsn"`
	Count int    `json:"count"` // of tasks to save
}

// roles run until their ctx ends, which is when the parent closes their input or dies, or until they have nothing left to do.
var roles = map[string]func(context.Context, order, *child.Teller) error{
	"crash":   crashChild,
	"memory":  memoryChild,
	"other":   otherChild,
	"idle":    idleChild,
	"service": serviceChild,
}

func startChild[E any](ctx context.Context, o order) (*child.Process[E], error) {
	return child.Start[E](ctx, o, childCommand)
}

func childMain(ctx context.Context) int {
	err := child.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, o order, t *child.Teller) error {
		if err := roles[o.Role](ctx, o, t); err != nil {
			return fmt.Errorf("the child for %s: %w", o.Role, err)
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		return exitBroken
	}
	return 0
}
