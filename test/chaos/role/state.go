package role

import (
	"context"
	"runtime"
	"time"

	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/usage"
)

const tellEvery = 5 * time.Second

// tellState tells the parent how the process is until ctx ends.
func tellState(ctx context.Context, t *child.Teller) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		resident, _, _ := usage.Memory() // 0 where it cannot be measured
		t.Tell(State{Memory: resident, Goroutines: runtime.NumGoroutine()})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
