package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

func TestHammerCountsWhatIsDoneInItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, err := Hammer(t.Context(), 3, time.Second, func(context.Context) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 5, nil
		})
		if err != nil || done.Count != 3*10*5 || done.Took != time.Second || len(done.Calls) != 30 ||
			done.PerSecond() != 150 {
			t.Errorf("%d tasks in %v by %d calls, %v", done.Count, done.Took, len(done.Calls), err)
		}
		if p := lateness.Percentile(done.Calls, 99); p != 100*time.Millisecond {
			t.Errorf("the 99th percentile of the calls is %v", p)
		}
	})
}

func TestHammerEndsWhenNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int64
		left.Store(7)
		done, err := untilDone(t.Context(), 2, func(context.Context) (int, error) {
			if left.Add(-1) < 0 {
				return 0, nil
			}
			time.Sleep(time.Second)
			return 1, nil
		})
		if err != nil || done.Count != 7 || done.Took != 4*time.Second {
			t.Errorf("%d tasks in %v, %v", done.Count, done.Took, err)
		}
	})
}

func TestEachWorkerCallsAlsoWhenTheSpanIsOver(t *testing.T) {
	done, err := Hammer(t.Context(), 3, 0, func(context.Context) (int, error) { return 1, nil })
	if err != nil || done.Count != 3 {
		t.Errorf("%d tasks, %v", done.Count, err)
	}
}

func TestTheFirstErrorEndsTheHammer(t *testing.T) {
	var calls atomic.Int64
	_, err := untilDone(t.Context(), 2, func(ctx context.Context) (int, error) {
		if calls.Add(1) == 1 {
			return 0, errOnFire
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, errOnFire) {
		t.Errorf("it ended with %v", err)
	}
}
