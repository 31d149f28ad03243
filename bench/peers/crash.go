package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"
)

// crashTasks is how many tasks run in the worker that crashes.
const crashTasks = 20

// crash kills a worker that runs tasks. It measures how long it takes until another worker, which starts at that
// moment, has begun all of them again. Where that does not happen, the figure is the patience.
func crash(ctx context.Context, r *run) (figures, error) {
	q, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	defer q.close()
	// The tasks are saved first: a worker of backlite does not see what another process saves.
	for i := range crashTasks {
		if err := q.save(ctx, newTask(i, time.Time{})); err != nil {
			return nil, err
		}
	}
	worker, out, err := r.startWorker(ctx, "-hold")
	if err != nil {
		return nil, err
	}
	silent := time.AfterFunc(r.patience, func() { _ = worker.Process.Kill() })
	defer func() { silent.Stop(); _ = worker.Process.Kill(); _ = worker.Wait() }()
	lines := bufio.NewScanner(out)
	for i := range crashTasks {
		if !lines.Scan() {
			return nil, errors.Join(fmt.Errorf("the worker has started %d of %d tasks", i, crashTasks), lines.Err())
		}
	}
	if err := worker.Process.Kill(); err != nil {
		return nil, err
	}
	killed := time.Now()
	s := newStarts(crashTasks)
	if err := q.work(ctx, s.ran); err != nil {
		return nil, err
	}
	if err := s.Wait(ctx, r.patience); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return figures{"crash": time.Since(killed).Seconds()}, nil
}
