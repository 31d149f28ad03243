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
	for asked, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, math.MinInt64: 0} { // negative: at once
		if s, ok := errors.AsType[*SnoozeError](fmt.Errorf("later: %w", Snooze(asked))); !ok || s.After != want {
			t.Errorf("Snooze(%v): got %+v, want %v", asked, s, want)
		}
		again := fmt.Errorf("call: %w", RetryAfter(io.EOF, asked))
		if r, ok := errors.AsType[*RetryAfterError](again); !ok || r.After != want || !errors.Is(again, io.EOF) {
			t.Errorf("RetryAfter(%v): got %v, want %v", asked, again, want)
		}
	}
	for asked, want := range map[time.Duration]time.Duration{ // keeps to the range of a TTR
		time.Minute: time.Minute, 0: 0, -1: 0, math.MinInt64: 0, 1: 1, math.MaxInt64: 24 * time.Hour,
	} {
		h, ok := errors.AsType[*HandOverError](fmt.Errorf("accepted: %w", HandOver(asked)))
		if !ok || h.TTR != want || h.Error() == "" {
			t.Errorf("HandOver(%v): got %+v, want %v", asked, h, want)
		}
	}
}

func TestOutcomeOfNoErrorIsNoErrorAndOfATypedNilIsOne(t *testing.T) {
	t.Parallel()
	if err := Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) is %v", err)
	}
	if err := RetryAfter(nil, time.Second); err != nil {
		t.Errorf("RetryAfter(nil) is %v", err)
	}
	var typedNil *failure
	for _, err := range []error{Permanent(typedNil), RetryAfter(typedNil, 0)} {
		if err == nil || err.Error() == "" {
			t.Errorf("got %v", err)
		}
	}
}
