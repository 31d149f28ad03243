package sim

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/store/memstore"
)

// TestClocksThatAProcessMayGoBy has a failover to a clock that is three seconds behind. The process learns of it a
// second later.
func TestClocksThatAProcessMayGoBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &listener{Store: memstore.New(), clocks: &clocks{db: newPace()}}
		start := time.Now()
		after := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
		e.clocks.step(-3 * time.Second)
		if got := e.latestTime(time.Now()); got != start {
			t.Errorf("before it observes it: %v, want the older clock", got.Sub(start))
		}
		time.Sleep(time.Second)
		if _, err := e.Now(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := e.latestTime(start); got != after(1) {
			t.Errorf("decided before it observed it: %v, want the older clock as it was then, 1 s", got.Sub(start))
		}
		if got := e.latestTime(time.Now()); got != after(-1) {
			t.Errorf("decided since: %v, want the new clock, -1 s", got.Sub(start))
		}
		if got := e.earliestTime(); got != after(-1) {
			t.Errorf("a delay is counted from %v, want the new clock, -1 s", got.Sub(start))
		}
	})
}

// TestAStepThatIsShorterThanACallDoesNotShow has a clock that steps back by two seconds under the same name.
func TestAStepThatIsShorterThanACallDoesNotShow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &listener{clocks: &clocks{db: newPace()}}
		start := time.Now()
		observe := func(took time.Duration) {
			t.Helper()
			e.observe(e.clocks.server(), "memory", took)
		}
		observe(50 * time.Millisecond)
		e.clocks.step(-2 * time.Second)
		for _, took := range []time.Duration{2 * time.Second, 1950 * time.Millisecond} {
			observe(took)
			if got := e.latestTime(start); got != start {
				t.Errorf("after an answer that took %v: %v, want the older clock", took, got.Sub(start))
			}
		}
		observe(1949 * time.Millisecond)
		if got, want := e.latestTime(start.Add(1)), start.Add(-2*time.Second); got != want {
			t.Errorf("after an answer that came sooner: %v, want the new clock, -2 s", got.Sub(start))
		}
		e.observe(0, "memory", time.Hour)
		if got, want := e.earliestTime(), start.Add(-2*time.Second); got.Before(want) || e.server != 1 {
			t.Errorf("after an older question was answered: %v, want the new clock still", got.Sub(start))
		}
		e.clocks.step(-4 * time.Second)
		e.observe(2, "other", time.Hour)
		if e.server != 2 {
			t.Error("another name was not observed")
		}
	})
}
