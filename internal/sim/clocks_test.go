package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/memstore"
)

// TestWhatAProcessMayHaveGoneBy has a failover to a clock that is three seconds behind, which the process hears of a second later.
func TestWhatAProcessMayHaveGoneBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &ear{Store: memstore.New(), clocks: &clocks{}}
		start := time.Now()
		after := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
		e.clocks.step(-3 * time.Second)
		if got := e.kindest(time.Now()); got != start {
			t.Errorf("before it hears: %v, want the older clock", got.Sub(start))
		}
		time.Sleep(time.Second)
		if _, err := e.Now(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := e.kindest(start); got != after(1) {
			t.Errorf("decided before it heard: %v, want the older clock as it was then, 1 s", got.Sub(start))
		}
		if got := e.kindest(time.Now()); got != after(-1) {
			t.Errorf("decided since: %v, want the new clock, -1 s", got.Sub(start))
		}
		if got := e.strictest(); got != after(-1) {
			t.Errorf("a promise is counted from %v, want the new clock, -1 s", got.Sub(start))
		}
	})
}
