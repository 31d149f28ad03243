package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/lateness"
)

func TestHammerCountsWhatIsDoneInItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, err := hammer(t.Context(), 3, time.Second, func(context.Context, int) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 5, nil
		})
		if err != nil || done.count != 3*10*5 || done.took != time.Second || len(done.calls) != 30 || done.perSecond() != 150 {
			t.Errorf("%d tasks in %v by %d calls, %v", done.count, done.took, len(done.calls), err)
		}
		if p := lateness.Percentile(done.calls, 99); p != 100*time.Millisecond {
			t.Errorf("the 99th percentile of the calls is %v", p)
		}
	})
}

func TestHammerEndsWhenNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int64
		left.Store(7)
		done, err := hammer(t.Context(), 2, forEver, func(context.Context, int) (int, error) {
			if left.Add(-1) < 0 {
				return 0, nil
			}
			time.Sleep(time.Second)
			return 1, nil
		})
		if err != nil || done.count != 7 || done.took != 4*time.Second {
			t.Errorf("%d tasks in %v, %v", done.count, done.took, err)
		}
	})
}

func TestEachWorkerCallsAlsoWhenTheSpanIsOver(t *testing.T) {
	done, err := hammer(t.Context(), 3, 0, func(context.Context, int) (int, error) { return 1, nil })
	if err != nil || done.count != 3 {
		t.Errorf("%d tasks, %v", done.count, err)
	}
}

func TestTheFirstErrorEndsTheHammer(t *testing.T) {
	errOnFire := errors.New("the machine is on fire")
	_, err := hammer(t.Context(), 2, forEver, func(ctx context.Context, worker int) (int, error) {
		if worker == 1 {
			return 0, errOnFire
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, errOnFire) {
		t.Errorf("it ended with %v", err)
	}
}
