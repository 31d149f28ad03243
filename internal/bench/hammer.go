package bench

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// hammered is what all goroutines did together.
type hammered struct {
	count int
	took  time.Duration
	calls []time.Duration // how long each call took, in no order
}

func (h hammered) perSecond() float64 { return float64(h.count) / h.took.Seconds() }

// hammer has goroutines call op in a loop, each at least once, until the span is over or op has nothing left to do. op
// returns how many tasks its call was for, and 0 at the end. The first error ends all.
func hammer(
	ctx context.Context, workers int, span time.Duration, op func(ctx context.Context, worker int) (int, error),
) (hammered, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts := make([]hammered, workers)
	began := time.Now()
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			part := &parts[worker]
			for first := true; ctx.Err() == nil; first = false {
				start := time.Now()
				if start.Sub(began) >= span && !first { // a busy machine may begin after a short span
					return
				}
				n, err := op(ctx, worker)
				if err != nil {
					cancel(err)
				}
				if n == 0 || err != nil {
					return
				}
				part.count += n
				part.calls = append(part.calls, time.Since(start))
			}
		})
	}
	group.Wait()
	all := hammered{took: time.Since(began)}
	for _, part := range parts {
		all.count += part.count
		all.calls = append(all.calls, part.calls...)
	}
	return all, context.Cause(ctx)
}

// pace calls f at a rate a second, n times in all or until ctx ends, each in a goroutine of its own: a slow call delays
// no other. It returns when all have, with the first error, which ends all.
func pace(ctx context.Context, rate, n int, f func(context.Context) error) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var group sync.WaitGroup
	for i := range n {
		if lateness.Pass(ctx, time.Until(began.Add(time.Duration(i)*time.Second/time.Duration(rate)))) != nil {
			break
		}
		group.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	return context.Cause(ctx)
}
