package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
