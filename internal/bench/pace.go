package bench

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lateness"
)

// pace calls f so many times a second, n times in all or until ctx ends, each in a goroutine of its own: a slow call holds up no
// other. It returns when all have, with the first error, which ends all.
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
