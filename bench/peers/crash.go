package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// crashTasks is how many tasks run in the worker that crashes.
const crashTasks = 20

// crash kills a worker that runs tasks. It measures how long it takes until another worker, which starts at that
// moment, has begun all of them again. Where that does not happen, the figure is the patience.
func crash(ctx context.Context, r *run, q queue) (figures, error) {
	// The tasks are saved first: a worker of backlite does not see what another process saves.
	for i := range crashTasks {
		if err := q.save(ctx, newTask(i, time.Time{})); err != nil {
			return nil, err
		}
	}
	worker, err := r.startWorker(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = worker.Kill() }() // it may have gone
	begun := 0
	worker.Listen(r.patience, func(started) bool {
		begun++
		return begun < crashTasks
	})
	if begun < crashTasks {
		return nil, fmt.Errorf("the worker has started %d of %d tasks", begun, crashTasks)
	}
	if err := worker.Signal(os.Kill); err != nil {
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
