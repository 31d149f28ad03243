package processor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"
)

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func TestOutcomesAreFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	permanent := fmt.Errorf("charge: %w", Permanent(io.EOF))
	if p, ok := errors.AsType[*PermanentError](permanent); !ok || !errors.Is(p.Err, io.EOF) || !errors.Is(permanent, io.EOF) {
		t.Errorf("got %v", permanent)
	}
	if s, ok := errors.AsType[*SnoozeError](fmt.Errorf("later: %w", Snooze(time.Minute))); !ok || s.After != time.Minute {
		t.Errorf("got %+v", s)
	}
	again := fmt.Errorf("call: %w", RetryAfter(io.EOF, time.Minute))
	if r, ok := errors.AsType[*RetryAfterError](again); !ok || r.After != time.Minute || !errors.Is(again, io.EOF) {
		t.Errorf("got %v", again)
	}
}

func TestHandOverIsFoundThroughWrappingAndKeepsToTheRangeOfATTR(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{
		time.Minute: time.Minute, 0: 0, -1: 0, math.MinInt64: 0, 1: 1, math.MaxInt64: 24 * time.Hour,
	} {
		h, ok := errors.AsType[*HandOverError](fmt.Errorf("accepted: %w", HandOver(asked)))
		if !ok || h.TTR != want || h.Error() == "" {
			t.Errorf("HandOver(%v): got %+v, want %v", asked, h, want)
		}
	}
}

func TestOutcomeOfNoErrorIsNoError(t *testing.T) {
	t.Parallel()
	if err := Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) is %v", err)
	}
	if err := RetryAfter(nil, time.Second); err != nil {
		t.Errorf("RetryAfter(nil) is %v", err)
	}
}

func TestTypedNilIsAnError(t *testing.T) {
	t.Parallel()
	var typedNil *failure
	for _, err := range []error{Permanent(typedNil), RetryAfter(typedNil, 0)} {
		if err == nil || err.Error() == "" {
			t.Errorf("got %v", err)
		}
	}
}

func TestNegativeWaitMeansAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := errors.AsType[*SnoozeError](Snooze(math.MinInt64))
	r, _ := errors.AsType[*RetryAfterError](RetryAfter(io.EOF, -1))
	if s.After != 0 || r.After != 0 {
		t.Errorf("got %v and %v", s.After, r.After)
	}
}
