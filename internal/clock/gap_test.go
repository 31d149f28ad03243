package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestGapIsSeenOnce(t *testing.T) {
	f := func(wall, mono time.Duration, want bool) {
		t.Helper()
		start := time.Now()
		g := Gap{start: start, wall: start.Round(0)}
		gap, suspended := g.tick(g.wall.Add(wall), mono)
		if gap != wall-mono || suspended != want {
			t.Errorf("wall %v, mono %v: gap %v, suspended %v", wall, mono, gap, suspended)
		}
		if gap, suspended = g.tick(g.wall.Add(time.Second), mono+time.Second); gap != 0 || suspended {
			t.Errorf("after wall %v, mono %v: the gap is seen again", wall, mono)
		}
	}
	f(time.Second, time.Second, false)
	f(2*time.Second, time.Second, false)
	f(2*time.Second+1, time.Second, true) // suspended
	f(time.Hour, 0, true)
	f(0, time.Hour, false)            // a process that did not run for long, awake
	f(-time.Hour, time.Second, false) // somebody set the clock back
}

func TestGapIsQuietWhileAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gap
		for range 3 {
			if gap, suspended := g.Tick(); gap != 0 || suspended {
				t.Errorf("gap %v, suspended %v", gap, suspended)
			}
			time.Sleep(time.Minute)
		}
	})
}
