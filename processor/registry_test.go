package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
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
		{"OK with options", "b", succeed, []RegisterOption{Concurrency(3), Timeout(0), TTR(time.Minute), MaxAttempts(2)}, nil},
		{"invalid tag", "a b", succeed, nil, ErrInvalidTag},
		{"nil", "c", nil, nil, ErrNilProcessor},
		{"nil Func", "c", nilFunc, nil, ErrNilProcessor},
		{"nil pointer", "c", nilPointer, nil, ErrNilProcessor},
		{"nil Typed", "c", Typed[int](nil), nil, ErrNilProcessor},
		{"middleware that returns nil", "c", succeed, []RegisterOption{Use(func(Processor) Processor { return nil })},
			ErrNilProcessor},
		{"nil option", "c", succeed, []RegisterOption{nil}, ErrInvalidOption},
		{"nil middleware", "c", succeed, []RegisterOption{Use(nil)}, ErrInvalidOption},
		{"nil backoff", "c", succeed, []RegisterOption{RetryBackoff(nil)}, ErrInvalidOption},
		{"negative concurrency", "c", succeed, []RegisterOption{Concurrency(-1)}, ErrInvalidOption},
		{"negative timeout", "c", succeed, []RegisterOption{Timeout(-1)}, ErrInvalidOption},
		{"negative TTR", "c", succeed, []RegisterOption{TTR(-1)}, ErrInvalidTTR},
		{"negative attempts", "c", succeed, []RegisterOption{MaxAttempts(-1)}, ErrInvalidMaxAttempts},
		{"taken tag", "taken", succeed, nil, ErrTagRegistered},
		{"taken tag in another case", "Taken", succeed, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r Registry
			if err := r.Register("taken", succeed); err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Register("a", succeed, Timeout(time.Second), Timeout(0)); err != nil {
		t.Fatal(err)
	}
	b, _ := r.Lookup("b")
	if b.Tag != "b" || b.Concurrency != 3 || b.Timeout != time.Minute || b.NoTimeout || b.TTR != time.Second ||
		b.MaxAttempts != 2 || b.Backoff(1) != 7 || b.Processor == nil {
		t.Errorf("got %+v", b)
	}
	if a, _ := r.Lookup("a"); !a.NoTimeout || a.Timeout != 0 || a.Backoff != nil {
		t.Errorf("got %+v", a)
	}
	if _, found := r.Lookup("c"); found {
		t.Error("found a tag that nobody registered")
	}
	if tags := r.Tags(); !slices.Equal(tags, []string{"a", "b"}) {
		t.Errorf("tags are %v", tags)
	}
}

func TestUseAddsUpFromTheOutside(t *testing.T) {
	t.Parallel()
	var order []string
	mark := func(name string) Middleware {
		return func(next Processor) Processor {
			return Func(func(ctx context.Context, task *Task) error {
				order = append(order, name)
				return next.Process(ctx, task)
			})
		}
	}
	var r Registry
	if err := r.Register("t", succeed, Use(mark("1"), mark("2")), Use(mark("3"))); err != nil {
		t.Fatal(err)
	}
	reg, _ := r.Lookup("t")
	if err := reg.Processor.Process(t.Context(), &Task{}); err != nil {
		t.Fatal(err)
	}
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

var succeed = Func(func(context.Context, *Task) error { return nil })

type counting struct{ n int }

func (c *counting) Process(context.Context, *Task) error { c.n++; return nil }
