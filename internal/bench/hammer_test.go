package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

func TestHammerCountsWhatIsDoneInItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, err := hammer(t.Context(), 3, time.Second, func(context.Context, int) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 5, nil
		})
		if err != nil || done.count != 3*10*5 || done.took != time.Second || len(done.calls) != 30 ||
			done.perSecond() != 150 {
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

func TestPaceIsHeldBesideSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var moments []time.Duration
		err := pace(t.Context(), 10, 5, func(context.Context) error {
			mu.Lock()
			moments = append(moments, time.Since(began))
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		})
		if err != nil || len(moments) != 5 || moments[0] != 0 || moments[4] != 400*time.Millisecond {
			t.Errorf("calls after %v, %v", moments, err)
		}
		if took := time.Since(began); took != 1400*time.Millisecond {
			t.Errorf("it took %v, want to the end of the last call", took)
		}
	})
}

func TestPaceEndsWithTheFirstError(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var calls atomic.Int64
			err := pace(ctx, 10, 1000, func(context.Context) error {
				if calls.Add(1) == 3 {
					if fails {
						return errOnFire
					}
					cancel()
				}
				return nil
			})
			want := context.Canceled
			if fails {
				want = errOnFire
			}
			if !errors.Is(err, want) || calls.Load() > 4 {
				t.Errorf("after %d calls: %v, want %v", calls.Load(), err, want)
			}
		})
	}
}
