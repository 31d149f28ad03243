package stall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestStallsCountOnceAndOnlyWithinTheSpan(t *testing.T) {
	t.Parallel()
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	var w Watch
	for _, s := range [][2]float64{{5, 6}, {1, 3}, {2, 4}, {2.5, 2.6}, {9, 12}} {
		w.stalls = append(w.stalls, span{at(s[0]), at(s[1])})
	}
	for _, tt := range []struct{ from, to, want float64 }{
		{0, 20, 7}, {0, 1, 0}, {2, 10, 4}, {3.5, 5.5, 1}, {10, 11, 1}, {4, 5, 0}, {11, 10, 0},
	} {
		if got := w.Still(at(tt.from), at(tt.to)); got != at(tt.want).Sub(began) {
			t.Errorf("from %v s to %v s it stood still for %v, want %v s", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestSleepThatIsPunctualIsNoStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.Sleep(ctx)
		if still := w.Still(began, time.Now()); still != 0 {
			t.Errorf("it stood still for %v", still)
		}
	})
}

func TestProbeThatTakesLongIsAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		takes := []time.Duration{0, quick, quick + time.Second, 0, quick + 2*time.Second}
		w.Probe(ctx, func(context.Context) error {
			time.Sleep(takes[0])
			if takes = takes[1:]; len(takes) == 0 {
				cancel()
			}
			return nil
		})
		if still := w.Still(began, time.Now()); still != 3*time.Second {
			t.Errorf("it stood still for %v, want 3 s", still)
		}
	})
}

func TestStallThatGoesOnCountsAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		began := time.Now()
		over := w.expect(time.Second)
		time.Sleep(3 * time.Second)
		if still := w.Still(began, time.Now()); still != 2*time.Second {
			t.Errorf("before it is noted it stood still for %v, want 2 s", still)
		}
		over()
		time.Sleep(time.Second)
		if still := w.Still(began, time.Now()); still != 2*time.Second {
			t.Errorf("it stood still for %v, want 2 s", still)
		}
	})
}
