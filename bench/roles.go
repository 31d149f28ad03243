package main

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/lifecycle/child"
)

// roles run until ctx ends, or until they have nothing left to do. ctx ends when the parent closes their input or dies.
var roles = map[string]func(context.Context, order, *child.Narrator) error{
	"lateness": latenessChild,
	"short":    shortChild,
	"ticks":    ticksChild,
	"backfill": backfillChild,
	"idle":     idleChild,
	"restart":  restartChild,
	"serve":    serveChild,
	"node":     nodeChild,
}

func play(ctx context.Context, o order, t *child.Narrator) error {
	role := roles[o.Role]
	if role == nil {
		return fmt.Errorf("there is no role %q", o.Role)
	}
	return role(ctx, o, t)
}
