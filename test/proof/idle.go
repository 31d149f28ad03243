package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/internal/usage"
	"github.com/delaytask/delaytask/processor"
)

const (
	idleSettle = 3 * time.Second
	idleSpan   = 10 * time.Second
	idleBound  = 0.01 // of a core
)

type idleReport struct {
	CPU time.Duration `json:"cpu"`
}

// idle measures what a process needs that serves a tag without tasks.
func idle(ctx context.Context, t *trial) error {
	t.say("a process without work, for %v", idleSpan)
	p, err := startChild[idleReport](ctx, order{Role: "idle", DSN: t.db.DSN})
	if err != nil {
		return err
	}
	r, err := p.Last()
	if err != nil {
		return err
	}
	share := r.CPU.Seconds() / idleSpan.Seconds()
	t.promise("CPU of an idle process", fmt.Sprintf("%.2f %% of a core", 100*share), fmt.Sprintf("%v %%", 100*idleBound),
		share < idleBound)
	return nil
}

func idleChild(ctx context.Context, o order, t *child.Teller) (err error) {
	s, err := open(ctx, o.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	nothing := processor.Func(func(context.Context, *processor.Task) error { return nil })
	if err := errors.Join(s.Register("proof.idle", nothing), s.Start(ctx), lateness.Pass(ctx, idleSettle)); err != nil {
		return err
	}
	before, err := usage.CPU()
	if err != nil {
		return err
	}
	if err := lateness.Pass(ctx, idleSpan); err != nil {
		return err
	}
	after, err := usage.CPU()
	if err != nil {
		return err
	}
	t.Tell(idleReport{CPU: after - before})
	return nil
}
