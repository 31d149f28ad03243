package processor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

func TestRegisterTakesWhatIsRightAndRefusesMistakes(t *testing.T) {
	t.Parallel()
	var nilFunc Func
	var nilPointer *counting
	for _, tt := range []struct {
		name string
		tag  string
		p    Processor
		opts []RegisterOption
		want error
	}{
		{"OK", "a", succeed, nil, nil},
		{"OK with options", "b", succeed, []RegisterOption{Concurrency(3), Timeout(0), TTR(time.Minute),
			MaxAttempts(2)}, nil},
		{"invalid tag", "a b", succeed, nil, delaytask.ErrInvalidTag},
		{"nil", "c", nil, nil, delaytask.ErrNilProcessor},
		{"nil Func", "c", nilFunc, nil, delaytask.ErrNilProcessor},
		{"nil pointer", "c", nilPointer, nil, delaytask.ErrNilProcessor},
		{"nil Typed", "c", Typed[int](nil), nil, delaytask.ErrNilProcessor},
		{"middleware that returns nil", "c", succeed, []RegisterOption{Use(func(Processor) Processor { return nil })},
			delaytask.ErrNilProcessor},
		{"nil option", "c", succeed, []RegisterOption{nil}, delaytask.ErrInvalidOption},
		{"nil middleware", "c", succeed, []RegisterOption{Use(nil)}, delaytask.ErrInvalidOption},
		{"nil backoff", "c", succeed, []RegisterOption{RetryBackoff(nil)}, delaytask.ErrInvalidOption},
		{"negative concurrency", "c", succeed, []RegisterOption{Concurrency(-1)}, delaytask.ErrInvalidOption},
		{"no timeout", "b", succeed, []RegisterOption{Timeout(-1)}, nil},
		{"negative TTR", "c", succeed, []RegisterOption{TTR(-1)}, delaytask.ErrInvalidTTR},
		{"negative attempts", "c", succeed, []RegisterOption{MaxAttempts(-1)}, delaytask.ErrInvalidMaxAttempts},
		{"taken tag", "taken", succeed, nil, delaytask.ErrTagRegistered},
		{"taken tag in another case", "Taken", succeed, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r Registry
			mustOK(t, r.Register("taken", succeed))
			err := r.Register(tt.tag, tt.p, tt.opts...)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if _, found := r.Lookup(tt.tag); found != (err == nil) && tt.tag != "taken" {
				t.Errorf("after %v the tag is registered: %v", err, found)
			}
		})
	}
}

func TestLookupReturnsWhatWasRegistered(t *testing.T) {
	t.Parallel()
	var r Registry
	err := r.Register("b", succeed,
		Concurrency(3), Timeout(time.Minute), TTR(time.Microsecond), MaxAttempts(2), RetryBackoff(Constant(7)))
	mustOK(t, err)
	mustOK(t, r.Register("a", succeed, Timeout(time.Second), Timeout(-1)))
	mustOK(t, r.Register("default", succeed, Timeout(-1), Timeout(0)))
	b, _ := r.Lookup("b")
	if b.Tag != "b" || b.Concurrency != 3 || b.Timeout != time.Minute || b.NoTimeout || b.TTR != time.Second ||
		b.MaxAttempts != 2 || b.Backoff(1) != 7 || b.Processor == nil {
		t.Errorf("got %+v", b)
	}
	if a, _ := r.Lookup("a"); !a.NoTimeout || a.Timeout != 0 || a.Backoff != nil {
		t.Errorf("got %+v", a)
	}
	if d, _ := r.Lookup("default"); d.NoTimeout || d.Timeout != 0 {
		t.Errorf("got %+v", d)
	}
	if _, found := r.Lookup("c"); found {
		t.Error("found a tag that is not registered")
	}
	if tags := r.Tags(); !slices.Equal(tags, []string{"a", "b", "default"}) {
		t.Errorf("tags are %v", tags)
	}
}

func TestUseAddsUpFromTheOutside(t *testing.T) {
	t.Parallel()
	var order []string
	mark := func(name string) Middleware {
		return func(next Processor) Processor {
			return Func(func(ctx context.Context, task *delaytask.Task) error {
				order = append(order, name)
				return next.Process(ctx, task)
			})
		}
	}
	var r Registry
	mustOK(t, r.Register("t", succeed, Use(mark("1"), mark("2")), Use(mark("3"))))
	reg, _ := r.Lookup("t")
	mustOK(t, reg.Processor.Process(t.Context(), &delaytask.Task{}))
	if !slices.Equal(order, []string{"1", "2", "3"}) {
		t.Errorf("ran in the order %v", order)
	}
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var r Registry
	var wg sync.WaitGroup
	won := make(chan string, 80)
	for range 4 {
		wg.Go(func() {
			for i := range 20 {
				tag := fmt.Sprint("t", i)
				if r.Register(tag, succeed) == nil {
					won <- tag
				}
				r.Lookup(tag)
				r.Tags()
			}
		})
	}
	wg.Wait()
	if len(won) != 20 || len(r.Tags()) != 20 {
		t.Errorf("%d registrations succeeded, %d tags are there, want 20 of each", len(won), len(r.Tags()))
	}
}

var succeed = Func(func(context.Context, *delaytask.Task) error { return nil })

type counting struct{ n int }

func (c *counting) Process(context.Context, *delaytask.Task) error { c.n++; return nil }

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

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
