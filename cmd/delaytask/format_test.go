package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpanIsForPeople(t *testing.T) {
	t.Parallel()
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := span(d); got != want {
			t.Errorf("%v gave %s, want %s", d, got, want)
		}
	}
	f(0, "0s")
	f(1500*time.Microsecond, "1ms")
	f(1500*time.Millisecond, "1.5s")
	f(90*time.Second, "1m30s")
	f(30*time.Minute, "30m")
	f(25*time.Hour+59*time.Minute, "1d1h")
	f(-time.Minute, "-1m")
}

func TestLatenessIsInMilliseconds(t *testing.T) {
	t.Parallel()
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := lateness(d); got != want {
			t.Errorf("%v gave %s, want %s", d, got, want)
		}
	}
	f(1234*time.Microsecond, "1.2 ms")
	f(3*time.Second, "3000.0 ms")
	f(time.Minute, "60.0 s")
}

func TestGroupedSetsThousandsApart(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d gave %s", n, got)
		}
	}
}

func TestTheBarWritesAtMostTenTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := (&app{stderr: &out, watched: true}).newBar(1000, time.Now)
		for done := range 1000 {
			b.set(done)
			time.Sleep(time.Millisecond)
		}
		b.set(1000)
		b.end()
		if n := strings.Count(out.String(), "\r"); n != 11 {
			t.Errorf("it was drawn %d times", n)
		}
		contains(t, out.String(), "] 500 of 1,000", "#] 1,000 of 1,000\n")
	})
}
