package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle/child"
)

// workerArgument makes this program a worker.
const workerArgument = "worker"

// order tells a worker which system it works for, and where.
type order struct {
	System, DSN string
	Hold        bool // no task ends
}

// started is the number of a task that a worker has started, and when.
type started struct {
	N  int
	At time.Time
}

// startWorker starts a process that runs tasks, and tells each start.
func (r *run) startWorker(ctx context.Context, hold bool) (*child.Process[started], error) {
	return child.Start[started](ctx, order{r.system.name, r.dsn, hold}, workerArgument)
}

// workUntilKilled is the worker.
func workUntilKilled(ctx context.Context, o order, n *child.Narrator) error {
	i := slices.IndexFunc(systems, func(s system) bool { return s.name == o.System })
	if i < 0 {
		return fmt.Errorf("no system is called %q", o.System)
	}
	q, err := systems[i].open(ctx, o.DSN)
	if err != nil {
		return err
	}
	defer q.close()
	err = q.work(ctx, func(ctx context.Context, t task) error {
		n.Tell(started{t.N, time.Now()})
		if !o.Hold {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// workElsewhere has a process of its own run the tasks, and notes their starts. end stops it in order: a worker that is
// killed leaves a lease of leadership behind, where a system has a leader.
func (r *run) workElsewhere(ctx context.Context, s starts) (end func() error, err error) {
	worker, err := r.startWorker(ctx, false)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait(func(e started) { s.Add(int64(e.N), e.At) }) }()
	return func() error {
		defer worker.End().Stop()
		return <-ended
	}, nil
}
