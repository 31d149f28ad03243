package processor

import (
	"math"
	"testing"
	"time"
)

func TestExponentialDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	f := func(base, limit time.Duration, attempt int, want time.Duration) {
		t.Helper()
		if got := Exponential(base, limit, 0)(attempt); got != want {
			t.Errorf("Exponential(%v, %v)(%d) = %v, want %v", base, limit, attempt, got, want)
		}
	}
	f(time.Second, time.Hour, 1, time.Second)
	f(time.Second, time.Hour, 2, 2*time.Second)
	f(time.Second, time.Hour, 12, 2048*time.Second)
	f(time.Second, time.Hour, 13, time.Hour)
	f(time.Second, time.Hour, math.MaxInt, time.Hour)
	f(time.Second, time.Hour, 0, time.Second)
	f(time.Second, time.Hour, math.MinInt, time.Second)
	f(time.Minute, time.Second, 1, time.Second)
	f(1, math.MaxInt64, 63, 1<<62)
	f(1, math.MaxInt64, 64, math.MaxInt64)
	f(0, 0, 1, time.Second)
	f(-1, -1, 100, time.Hour)
}

func TestJitterSpreadsBothWays(t *testing.T) {
	t.Parallel()
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	for range 2000 {
		d := DefaultBackoff(13)
		low, high = min(low, d), max(high, d)
	}
	if low < 48*time.Minute || low > 50*time.Minute || high > 72*time.Minute || high < 70*time.Minute {
		t.Errorf("1 h ± 20 %% gave %v to %v", low, high)
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{-1, 0, 1, 5, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := Exponential(time.Second, math.MaxInt64, jitter)
		for range 200 {
			if d := b(1); d < 0 || d > 2*time.Second {
				t.Fatalf("jitter %v moved 1 s to %v", jitter, d)
			}
			if d := b(1000); d < 0 {
				t.Fatalf("jitter %v wrapped the longest wait to %v", jitter, d)
			}
		}
	}
}
