package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lateness"
)

const (
	stubbornTag   = "proof.stubborn"
	stubbornEvery = 50 * time.Millisecond // a save begins
	stubbornTry   = 5 * time.Second       // may take so long
	stubbornAgain = 500 * time.Millisecond
	stubbornDelay = 2 * time.Second
)

// goOnSaving begins a save at a steady pace, and tries each as often as it takes. The function that it returns ends that when all
// that has begun is accepted.
func (o *outageStory) goOnSaving(ctx context.Context, s *delaytask.Scheduler) (end func() error) {
	pacing, stop := context.WithCancel(ctx)
	var saves sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	saves.Go(func() {
		for lateness.Pass(pacing, stubbornEvery) == nil {
			saves.Go(func() {
				id, tries, err := saveUntilAccepted(ctx, s)
				mu.Lock()
				defer mu.Unlock()
				o.accepted = append(o.accepted, id)
				o.tries += tries
				errs = append(errs, err)
			})
		}
	})
	return func() error {
		stop()
		saves.Wait()
		return errors.Join(errs...)
	}
}

// saveUntilAccepted does what a caller is told to do: it saves again, and under the same id when the outcome is unknown.
func saveUntilAccepted(ctx context.Context, s *delaytask.Scheduler) (id int64, tries int, err error) {
	var opts []delaytask.Option
	for {
		trying, cancel := context.WithTimeout(ctx, stubbornTry)
		id, err = s.SaveDelayTask(trying, stubbornTag, nil, stubbornDelay, opts...)
		cancel()
		tries++
		if err == nil || ctx.Err() != nil {
			return id, tries, err
		}
		if out, unknown := errors.AsType[*delaytask.OutcomeUnknownError](err); unknown {
			opts = []delaytask.Option{delaytask.WithID(out.ID)}
		}
		if err := lateness.Pass(ctx, stubbornAgain); err != nil {
			return id, tries, err
		}
	}
}
