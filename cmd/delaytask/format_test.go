package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFiguresAreForPeople(t *testing.T) {
	t.Parallel()
	for _, f := range [][2]string{
		{span(0), "0s"}, {span(1500 * time.Microsecond), "1ms"}, {span(1500 * time.Millisecond), "1.5s"},
		{span(90 * time.Second), "1m30s"}, {span(30 * time.Minute), "30m"}, {span(25*time.Hour + 59*time.Minute), "1d1h"},
		{span(-time.Minute), "-1m"}, {lateness(1234 * time.Microsecond), "1.2 ms"},
		{lateness(3 * time.Second), "3000.0 ms"}, {lateness(time.Minute), "60.0 s"},
		{grouped(0), "0"}, {grouped(999), "999"}, {grouped(1000), "1,000"}, {grouped(1234567), "1,234,567"},
	} {
		if f[0] != f[1] {
			t.Errorf("got %s, want %s", f[0], f[1])
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
