package main

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

// freshPace spreads the saves of the new tasks over the time in which the process catches up.
const freshPace = 50 * time.Millisecond

// crashChild serves the tasks of the proof, saves new ones, and tells when a task starts and ends.
func crashChild(ctx context.Context, o order, t *child.Teller) (err error) {
	s, err := open(ctx, o.DSN, delaytask.Config{Workers: crashTasks, TTR: crashTTR})
	if err != nil {
		return err
	}
	defer func() { err = stopped(ctx, s, err) }()
	work := processor.Func(func(ctx context.Context, task *processor.Task) error {
		t.Tell(crashEvent{ID: task.ID, At: time.Now()})
		if err := lateness.Pass(ctx, crashWork); err != nil {
			return err
		}
		t.Tell(crashEvent{ID: task.ID, At: time.Now(), Ended: true})
		return nil
	})
	for _, tag := range []string{crashTag, freshTag} {
		if err := s.Register(tag, work); err != nil {
			return err
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if err := saveFresh(ctx, s, o.Count); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// saveFresh saves at a steady pace, however long one save takes.
func saveFresh(ctx context.Context, s *delaytask.Scheduler, n int) error {
	errs := make(chan error, n)
	var saves sync.WaitGroup
	for range n {
		saves.Go(func() {
			_, err := s.SaveDelayTask(ctx, freshTag, nil, freshDelay)
			errs <- err
		})
		if err := lateness.Pass(ctx, freshPace); err != nil {
			return err
		}
	}
	saves.Wait()
	for range n {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
