package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/memstore"
)

// TestWhatAProcessMayHaveGoneBy has a failover to a clock that is three seconds behind, which the process hears of a
// second later.
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

// TestAStepThatIsShorterThanACallShowsToNobody has a clock that steps back by two seconds under the same name.
func TestAStepThatIsShorterThanACallShowsToNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &ear{clocks: &clocks{}}
		start := time.Now()
		hear := func(took time.Duration) {
			t.Helper()
			e.hear(e.clocks.server(), "memory", took)
		}
		hear(50 * time.Millisecond)
		e.clocks.step(-2 * time.Second)
		for _, took := range []time.Duration{2 * time.Second, 1950 * time.Millisecond} {
			hear(took)
			if got := e.kindest(start); got != start {
				t.Errorf("after an answer that took %v: %v, want the older clock", took, got.Sub(start))
			}
		}
		hear(1949 * time.Millisecond)
		if got, want := e.kindest(start.Add(1)), start.Add(-2*time.Second); got != want {
			t.Errorf("after an answer that came sooner: %v, want the new clock, -2 s", got.Sub(start))
		}
		e.hear(0, "memory", time.Hour)
		if got, want := e.strictest(), start.Add(-2*time.Second); got.Before(want) || e.server != 1 {
			t.Errorf("after an older question was answered: %v, want the new clock still", got.Sub(start))
		}
		e.clocks.step(-4 * time.Second)
		e.hear(2, "other", time.Hour)
		if e.server != 2 {
			t.Error("another name was not heard")
		}
	})
}
