package delaytask_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/processor"
)

func TestLatenessOfAWindow(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	for _, tag := range []string{"t", "other"} {
		if err := s.Register(tag, processor.Func(func(context.Context, *processor.Task) error { return nil })); err != nil {
			t.Fatal(err)
		}
		for _, delay := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute, time.Hour} {
			if _, err := s.SaveDelayTask(t.Context(), tag, nil, delay); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Advance(5 * time.Minute)
	if err := s.Pause(t.Context(), "t"); err != nil { // so that what is due meanwhile starts late
		t.Fatal(err)
	}
	s.Advance(25 * time.Minute)
	if err := s.Resume(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s.Advance(0)
	for window, want := range map[time.Duration]delaytask.Lateness{
		time.Hour: {Samples: 3, P50: 10 * time.Minute, P95: 20 * time.Minute, P99: 20 * time.Minute, Max: 20 * time.Minute},
		20 * time.Minute: {Samples: 2, P50: 10 * time.Minute, P95: 20 * time.Minute, P99: 20 * time.Minute,
			Max: 20 * time.Minute},
		30*time.Minute - time.Microsecond: {Samples: 2, P50: 10 * time.Minute, P95: 20 * time.Minute,
			P99: 20 * time.Minute, Max: 20 * time.Minute},
		math.MaxInt64: {Samples: 3, P50: 10 * time.Minute, P95: 20 * time.Minute, P99: 20 * time.Minute, Max: 20 * time.Minute},
	} {
		if got, err := s.Lateness(t.Context(), "t", window); got != want || err != nil {
			t.Errorf("of %v: got %+v, %v; want %+v", window, got, err, want)
		}
	}
	s.Advance(10 * time.Minute)
	if got, err := s.Lateness(t.Context(), "t", 9*time.Minute); got != (delaytask.Lateness{}) || err != nil {
		t.Errorf("of a window without tasks: got %+v, %v", got, err)
	}
	for _, bad := range []struct {
		tag    string
		window time.Duration
		want   error
	}{{"", time.Hour, delaytask.ErrInvalidTag}, {"a b", time.Hour, delaytask.ErrInvalidTag},
		{"t", 0, delaytask.ErrInvalidOption}, {"t", -1, delaytask.ErrInvalidOption}} {
		if _, err := s.Lateness(t.Context(), bad.tag, bad.window); !errors.Is(err, bad.want) {
			t.Errorf("%q, %v: got %v, want %v", bad.tag, bad.window, err, bad.want)
		}
	}
}
