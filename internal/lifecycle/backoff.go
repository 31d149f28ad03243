package lifecycle

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d, or until ctx ends; it reports whether the time has passed.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Backoff is the wait before the n-th repetition of something the database refused: 10 ms, doubling up to 2 s, and
// jittered so that processes which failed together do not come back together.
func Backoff(n int) time.Duration {
	return Jitter(min(10*time.Millisecond<<min(n, 10), 2*time.Second), 0.5)
}

// Jitter moves d by up to the given share in both directions.
func Jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}
