package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// read takes a reading whose request and reply travel for the given times, of a server that is ahead of the bubble's
// wall clock.
func read(c *Clock, name string, ahead, request, reply time.Duration) bool {
	sent := time.Now()
	time.Sleep(request)
	r := row.Reading{Server: name, Time: row.Time(time.Now().Add(ahead).UnixMicro())}
	time.Sleep(reply)
	return c.Add(r, sent, time.Now())
}

// wantBounds checks both bounds against the bubble's wall clock.
func wantBounds(t *testing.T, c *Clock, lower, upper time.Duration) {
	t.Helper()
	now := row.At(time.Now())
	least, ok1 := c.AtLeast()
	most, ok2 := c.AtMost()
	if !ok1 || !ok2 {
		t.Fatal("no anchor")
	}
	if least.Sub(now) != lower || most.Sub(now) != upper {
		t.Errorf("bounds are %v, %v from the true time; want %v, %v", least.Sub(now), most.Sub(now), lower, upper)
	}
}

func wantAnchor(t *testing.T, c *Clock, want bool) {
	t.Helper()
	_, least := c.AtLeast()
	_, most := c.AtMost()
	_, until := c.Until(1)
	_, width := c.Width()
	closed := false
	select {
	case <-c.Anchored():
		closed = true
	default:
	}
	if least != want || most != want || until != want || width != want || closed != want {
		t.Fatalf("anchored: AtLeast %v, AtMost %v, Until %v, Width %v, Anchored %v; want %v", least, most, until, width,
			closed, want)
	}
}

func TestBoundsAreTheTwoLegsOfTheReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Drift(0))
		read(c, "a", 0, 3*time.Millisecond, 5*time.Millisecond)
		// Behind by the reply's way, ahead by the request's and by the microsecond that the server cut off.
		wantBounds(t, c, -5*time.Millisecond, 3*time.Millisecond+time.Microsecond)
		if w, _ := c.Width(); w != 8*time.Millisecond+time.Microsecond {
			t.Errorf("width %v", w)
		}
	})
}

func TestDriftWidensTheBoundsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		read(c, "a", 0, 0, 0)
		time.Sleep(10 * time.Second)
		wantBounds(t, c, -2*time.Millisecond, 2*time.Millisecond+time.Microsecond)
	})
}

func TestReadingsMayArriveInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Drift(0))
		sent := time.Now()
		time.Sleep(time.Millisecond)
		early := row.Reading{Server: "a", Time: row.At(time.Now())}
		received := time.Now()
		read(c, "a", 0, 4*time.Millisecond, 4*time.Millisecond)
		c.Add(early, sent, received)
		wantBounds(t, c, 0, time.Millisecond+time.Microsecond)
	})
}

func TestAServerWithoutAReadingForAMinuteIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Drift(0))
		read(c, "a", 0, 0, 0)
		read(c, "b", 300*time.Millisecond, 0, 0)
		time.Sleep(time.Minute)
		read(c, "a", 0, 0, 0)
		wantBounds(t, c, 0, 300*time.Millisecond+time.Microsecond)
		time.Sleep(time.Microsecond)
		read(c, "a", 0, 0, 0)
		wantBounds(t, c, 0, time.Microsecond)
	})
}

func TestAnOutageForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		read(c, "a", 0, 0, 0)
		time.Sleep(time.Hour)
		wantAnchor(t, c, true)
		if read(c, "b", 5*time.Second, 0, 0) {
			t.Error("a failover during an outage was taken for the same clock")
		}
	})
}

func TestAnotherClockDropsTheAnchor(t *testing.T) {
	for name, step := range map[string]struct {
		server string
		ahead  time.Duration
		want   bool
	}{
		"KnownServerInItsBounds":      {"a", 0, true},
		"KnownServerAhead":            {"a", 2*time.Millisecond + 2*time.Microsecond, false},
		"KnownServerBehind":           {"a", -2*time.Millisecond - 2*time.Microsecond, false},
		"NewServerWithinTolerance":    {"b", 500 * time.Millisecond, true},
		"NewServerBehindTolerated":    {"b", -500 * time.Millisecond, true},
		"NewServerTooFarAhead":        {"b", 503 * time.Millisecond, false},
		"NewServerTooFarBehind":       {"b", -503 * time.Millisecond, false},
		"NewServerInAnotherMillenium": {"b", 200 * 365 * 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Drift(0))
				read(c, "a", 0, time.Millisecond, time.Millisecond)
				if got := read(c, step.server, step.ahead, time.Millisecond, time.Millisecond); got != step.want {
					t.Errorf("Add = %v, want %v", got, step.want)
				}
				wantAnchor(t, c, step.want)
				if c.RescueHeld() == step.want {
					t.Errorf("RescueHeld = %v", c.RescueHeld())
				}
			})
		})
	}
}

func TestOnlyAReadingAskedForAfterTheDropStartsTheNextAnchor(t *testing.T) {
	for name, drop := range map[string]func(*Clock){
		"AnotherClock": func(c *Clock) { read(c, "b", time.Minute, 0, 0) },
		"Drop":         (*Clock).Drop,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(Drift(0))
				read(c, "a", 0, 0, 0)
				sent := time.Now()
				old := row.Reading{Server: "a", Time: row.At(sent)}
				time.Sleep(time.Millisecond)
				drop(c)
				if c.Add(old, sent, time.Now()) {
					t.Error("a reading that was under way during the drop was taken")
				}
				wantAnchor(t, c, false)
				if held := c.RescueHeld(); held != (name == "AnotherClock") {
					t.Errorf("the rescue is held: %v", held)
				}
				if !read(c, "b", time.Minute, 0, 0) {
					t.Error("the next reading was refused")
				}
				wantBounds(t, c, time.Minute, time.Minute+time.Microsecond)
			})
		})
	}
}

func TestRescueIsHeldForOneRenewalInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(RescueHold(7 * time.Second))
		read(c, "a", 0, 0, 0)
		time.Sleep(time.Millisecond)
		read(c, "a", time.Second, 0, 0)
		read(c, "a", time.Second, 0, 0)
		time.Sleep(7*time.Second - 1)
		c.Drop()
		if !c.RescueHeld() {
			t.Error("the hold ended too early")
		}
		time.Sleep(time.Nanosecond)
		if c.RescueHeld() {
			t.Error("the hold did not end")
		}
	})
}

// TestASuspendIsSeenByTheFirstAtMost: until the next reading the upper bound would be behind by as long as the
// machine slept.
func TestASuspendIsSeenByTheFirstAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		c := New(Drift(0), Lost(func() { lost++ }))
		var slept time.Duration
		resumed := time.Now().Add(time.Second)
		c.wall = func(at time.Time) time.Time {
			if at.Before(resumed) {
				return wallOf(at)
			}
			return wallOf(at).Add(slept)
		}
		read(c, "a", 0, 0, 0)
		time.Sleep(time.Second)
		slept = maxGap // may be the wall clock's own
		if _, ok := c.AtMost(); !ok {
			t.Error("an awake machine lost the anchor")
		}
		slept = maxGap + 1
		if most, ok := c.AtMost(); ok {
			t.Errorf("the upper bound is still %v", most)
		}
		wantAnchor(t, c, false)
		if lost != 1 {
			t.Errorf("%d readings were asked for", lost)
		}
		read(c, "a", 0, 0, 0)
		wantAnchor(t, c, true)
	})
}

func TestAnchoredWakesThoseThatWaitForAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		for range 2 {
			anchored := c.Anchored()
			found := make(chan bool)
			go func() {
				<-anchored
				_, ok := c.AtLeast()
				found <- ok
			}()
			synctest.Wait()
			read(c, "a", 0, 0, 0)
			if !<-found {
				t.Error("woken without an anchor")
			}
			c.Drop()
		}
	})
}

func TestUntilIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		read(c, "a", 123*time.Microsecond, 0, time.Millisecond)
		for _, d := range []time.Duration{1, time.Microsecond, 999 * time.Microsecond, time.Second, time.Hour,
			30 * 24 * time.Hour} {
			least, _ := c.AtLeast()
			target := least.Add(d)
			wait, _ := c.Until(target)
			time.Sleep(wait)
			if least, _ = c.AtLeast(); least < target {
				t.Errorf("%v later the clock lacks %v", d, target.Sub(least))
			}
			if late := least.Sub(target); late > time.Microsecond {
				t.Errorf("%v later the clock is %v past the target", d, late)
			}
			if wait, _ = c.Until(target); wait > 0 {
				t.Errorf("%v later there is still %v to wait", d, wait)
			}
		}
		if wait, _ := c.Until(row.MaxTime); wait < 100*365*24*time.Hour {
			t.Errorf("the year 9999 is %v away", wait)
		}
		if wait, _ := c.Until(0); wait > 0 {
			t.Errorf("a moment that is not set is %v away", wait)
		}
	})
}

func TestSkewIsTheMiddleOfTheBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Drift(0))
		if c.Skew() != 0 {
			t.Error("skew without an anchor")
		}
		read(c, "a", -3*time.Second, time.Millisecond, time.Millisecond)
		if d := c.Skew() + 3*time.Second; d < 0 || d > 2*time.Microsecond {
			t.Errorf("skew is off by %v", d)
		}
	})
}

func TestReadersRunBesideReadingsAndDrops(t *testing.T) {
	c := New()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 1000 {
				<-c.Anchored()
				c.AtLeast()
				c.Until(1)
				c.RescueHeld()
			}
		})
	}
	for range 500 {
		read(c, "a", 0, 0, 0)
		c.Drop()
	}
	read(c, "a", 0, 0, 0)
	group.Wait()
}

func TestOfTwoServersInOneMicrosecondTheOneBehindCounts(t *testing.T) {
	for range 20 { // the servers are looked at in no order
		synctest.Test(t, func(t *testing.T) {
			c := New(Drift(0))
			now := row.At(time.Now())
			for _, server := range []string{"ahead", "behind"} {
				c.Add(row.Reading{Time: now, Server: server}, time.Now(), time.Now())
				time.Sleep(500 * time.Nanosecond)
			}
			time.Sleep(100 * time.Nanosecond)
			if least, _ := c.AtLeast(); least != now {
				t.Errorf("AtLeast is %v past what the server behind has reached", least.Sub(now))
			}
		})
	}
}

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
	f(-time.Hour, time.Second, false) // the clock was set back
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

func TestNapLastsAsLongAsItShall(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, NapLimit} {
		begin := time.Now()
		Nap(d)
		if took := time.Since(begin); took < d {
			t.Errorf("a nap of %v ended after %v", d, took)
		}
	}
}

func BenchmarkAtLeast(b *testing.B) {
	c := New()
	c.Add(row.Reading{Server: "a", Time: row.At(time.Now())}, time.Now(), time.Now())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.AtLeast()
		}
	})
}

// The two show how late each wakes: the benchmark measures a wait of 1 ms.
func BenchmarkNap(b *testing.B) {
	for b.Loop() {
		Nap(time.Millisecond)
	}
}

func BenchmarkTimer(b *testing.B) {
	for b.Loop() {
		time.Sleep(time.Millisecond)
	}
}
