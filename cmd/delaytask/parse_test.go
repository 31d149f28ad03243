package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/durations"
	"github.com/delaytask/delaytask/internal/view"
)

func TestMaxLatenessIsADurationAndAPolicy(t *testing.T) {
	t.Parallel()
	f := func(s string, want time.Duration, policy delaytask.LatePolicy) {
		t.Helper()
		if d, p, err := parseMaxLateness(s); err != nil || d != want || p != policy {
			t.Errorf("%q gave %v, %v, %v", s, d, p, err)
		}
	}
	f("10m:skip", 10*time.Minute, delaytask.LateSkip)
	f("1d12h:fail", 36*time.Hour, delaytask.LateFail)
	f("0s:run", 0, delaytask.LateRun)
}

func TestHeadersMayHoldEqualsSignsAndTheLastOneCounts(t *testing.T) {
	t.Parallel()
	got, err := parseHeaders([]string{"a=1", "b=", "c=x=y", "a=2"})
	if err != nil || !maps.Equal(got, map[string]string{"a": "2", "b": "", "c": "x=y"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzParseMaxLateness(f *testing.F) {
	for _, seed := range []string{"10m:skip", "1d:run", ":", "::skip", "10m:skip:fail", "-1s:run", "9999999999h:fail"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, policy, err := parseMaxLateness(s)
		if err != nil {
			if exitCode(err) != exitWrongUse {
				t.Fatalf("%q: %v is no wrong use", s, err)
			}
			return
		}
		again, same, err := parseMaxLateness(durations.Format(d) + ":" + view.LatePolicy(policy))
		if d < 0 || again != d || same != policy || err != nil {
			t.Fatalf("%q gave %v and %v; written again %v, %v, %v", s, d, policy, again, same, err)
		}
	})
}

func FuzzParseHeaders(f *testing.F) {
	for _, seed := range []string{"a=b", "=", "a", "", "a=b=c", "é=ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		headers, err := parseHeaders([]string{s})
		if err != nil {
			if exitCode(err) != exitWrongUse {
				t.Fatalf("%q: %v is no wrong use", s, err)
			}
			return
		}
		for name, value := range headers {
			if name == "" || name+"="+value != s {
				t.Fatalf("%q gave %q = %q", s, name, value)
			}
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{
		"2027-01-31T08:30:00Z", "2027-01-31T08:30:00.250+02:00", "2027-02-30T08:30:00Z", "2027-01-31T24:00:00Z", "tomorrow", "",
		"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999999-23:59",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseTime("at", s)
		if err != nil {
			if exitCode(err) != exitWrongUse || !at.IsZero() {
				t.Fatalf("%q gave %v, %v", s, at, err)
			}
			return
		}
		if year := at.UTC().Year(); year < 0 || year > 9999 { // a zone can lead to a year that has no such form
			return
		}
		if again, err := parseTime("at", at.UTC().Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
			t.Fatalf("%q gave %v; written again %v, %v", s, at, again, err)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	for _, seed := range append(statuses, "", "Pending", "pending ", "waiting") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		status, err := parseStatus(s)
		if err != nil {
			if exitCode(err) != exitWrongUse || status != "" {
				t.Fatalf("%q gave %q, %v", s, status, err)
			}
			return
		}
		if string(status) != s || s != "" && !slices.Contains(statuses, s) {
			t.Fatalf("%q was taken as %q", s, status)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"1", "0", "-1", "+1", "0x10", "9223372036854775807", "9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseID(s); err == nil && n <= 0 || err != nil && exitCode(err) != exitWrongUse {
			t.Fatalf("%q gave %d, %v", s, n, err)
		}
	})
}
