package processor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
)

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func TestOutcomesAreFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	permanent := fmt.Errorf("charge: %w", Permanent(io.EOF))
	p, ok := errors.AsType[*PermanentError](permanent)
	if !ok || !errors.Is(p.Err, io.EOF) || !errors.Is(permanent, io.EOF) {
		t.Errorf("got %v", permanent)
	}
	// negative: at once
	for asked, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, math.MinInt64: 0} {
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

func TestParseToken(t *testing.T) {
	t.Parallel()
	largest := delaytask.Token{ID: math.MaxInt64, Version: math.MaxInt64}
	for s, want := range map[string]delaytask.Token{
		"1.1": {ID: 1, Version: 1}, "794354201396589397.3": {ID: 794354201396589397, Version: 3},
		largest.String(): largest,
	} {
		if got, err := delaytask.ParseToken(s); err != nil || got != want || got.String() != s {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", ".", "1", "1.", ".1", "0.1", "1.0", "01.1", "1.01", "+1.1", "1.+1", "-1.1", "1.-1", " 1.1", "1.1 ", "1 .1",
		"1.1.1", "1,1", "1.1\n", "1_0.1", "0x1.1", "1e3.1", "a.b", "9223372036854775808.1", "1.9223372036854775808",
		"١.١", "1.1\x00", strings.Repeat("9", 1<<16),
	} {
		if got, err := delaytask.ParseToken(s); !errors.Is(err, delaytask.ErrInvalidToken) ||
			got != (delaytask.Token{}) || len(err.Error()) > 500 {
			t.Errorf("%.50q: got %v, %v", s, got, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "1.1", "7.0", "-1.2", "9223372036854775807.9223372036854775807",
		"9223372036854775808.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := delaytask.ParseToken(s)
		if err != nil {
			if !errors.Is(err, delaytask.ErrInvalidToken) || token != (delaytask.Token{}) {
				t.Fatalf("%q: %v, %v", s, token, err)
			}
			return
		}
		if token.ID <= 0 || token.Version <= 0 || token.String() != s {
			t.Fatalf("%q is read as %v", s, token)
		}
	})
}
