package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

func TestTasksObeyTheDatabasesClock(t *testing.T) {
	inBubblesOf(
		t,
		[]time.Duration{-time.Hour, 3 * time.Hour, 400 * time.Millisecond},
		func(w *world, offset time.Duration) {
			w.setClock(offset)
			e := w.engine(w.store, serving{"a": nothing})
			other := w.idle(w.store, nil)
			time.Sleep(3 * time.Second)
			began := time.Now()
			own, foreign := w.save(e, "a", 3*time.Second), w.save(other, "a", 4*time.Second)
			time.Sleep(10 * time.Second)
			for id, delay := range map[int64]time.Duration{own: 3 * time.Second, foreign: 4 * time.Second} {
				if late := w.ran(id, 1)[0].at.Sub(began) - delay; late < 0 || late > 3*time.Millisecond {
					w.Errorf("started %v late", late)
				}
			}
		},
	)
}

// TestFailoverToAnotherClock steps the database's clock. Leases and due times are the new clock's from then on.
func TestFailoverToAnotherClock(t *testing.T) {
	// Several of each: where in their rounds the step meets the readings and the rescue is left to chance.
	steps := append([]time.Duration{-20 * time.Second}, slices.Repeat([]time.Duration{20 * time.Second}, 8)...)
	inBubblesOf(t, steps, func(w *world, step time.Duration) {
		e := w.engine(w.store, serving{"a": nothing, "long": untilEnd(9*time.Second, nil)})
		time.Sleep(3 * time.Second)
		long, id := w.save(e, "long", 0), w.save(e, "a", 30*time.Second)
		time.Sleep(5 * time.Second)
		w.setClock(step)
		w.store.SetServer("other")
		time.Sleep(time.Minute)
		for _, id := range []int64{long, id} { // the step ended no lease of what ran
			w.ran(id, 1)
			w.standing(row.Completed, 1, 0, id)
		}
		fresh := w.save(e, "a", 3*time.Second)
		time.Sleep(6 * time.Second)
		if got := w.row(fresh); got.Status != row.Completed || got.Execution.Sub(got.Expected) > 3*time.Millisecond {
			w.Errorf("after the failover: %+v", got)
		}
	})
}

// TestRescueIsHeldAfterAFailoverToAClockAhead lets another node look for leases just when the step has ended one: its
// executor has had no time to renew it.
func TestRescueIsHeldAfterAFailoverToAClockAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"long": untilEnd(9*time.Second, nil)})
		other := w.engine(w.store, nil)
		time.Sleep(3 * time.Second)
		id := w.save(e, "long", 0)
		time.Sleep(5111 * time.Millisecond) // no renewal is due now
		w.setClock(20 * time.Second)
		w.store.SetServer("other")
		w.must(other.find.Rescue(w.Context()))
		time.Sleep(time.Minute)
		w.ran(id, 1)
		w.standing(row.Completed, 1, 0, id)
	})
}

// A claim may be the first to hear of the server that took over: there is no anchor when its rows are to start. Or it
// is lost after that.
func TestClaimThatCostsTheClockItsAnchorStartsNothingEarly(t *testing.T) {
	inBubblesOf(t, []bool{true, false}, func(w *world, byClaim bool) {
		var failover sync.Once
		e := w.engine(at(w.store, "Claim", func(_ context.Context, do func() error) error {
			if byClaim {
				failover.Do(func() { w.setClock(-5 * time.Second) })
			}
			return do()
		}), serving{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", time.Second)
		time.Sleep(970 * time.Millisecond) // claimed ahead by now
		if !byClaim {
			e.Bounds.Drop()
			w.setClock(-5 * time.Second)
		}
		time.Sleep(14 * time.Second)
		w.ran(id, 1)
	})
}

func TestAWrongClockOfThisMachineIsSaidOnceAtTheStart(t *testing.T) {
	inBubble(t, func(w *world) {
		w.store.SetOffset(time.Minute)
		logged, log := listen()
		e := w.idle(w.store, nil, log)
		for range 2 {
			if got := logged.all(); strings.Count(got, "clock is off") != 1 || !strings.Contains(got, "skew=-1m") {
				w.Errorf("said: %s", got)
			}
			time.Sleep(10 * time.Second)
			w.must(e.Stop(w.Context()))
		}
	})
}

// TestSuspendDropsTheAnchorAndScansAtOnce reports suspends in the place of the real gap: in a bubble no clock gains on
// another.
func TestSuspendDropsTheAnchorAndScansAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		const suspends = 5
		anchors := make(chan (<-chan struct{}), suspends) // as they were before each
		ctx, cancel := context.WithCancel(e.Life)
		defer cancel()
		e.Go(func() {
			e.readClock(ctx, func() (time.Duration, bool) {
				n := len(anchors)
				if n == suspends {
					return 0, false
				}
				// Overdue for so long a row is the scan's alone.
				w.plain(1000+int64(n), "a", row.At(time.Now().Add(-time.Hour)))
				anchors <- e.Bounds.Anchored()
				return time.Hour, true
			})
		})
		time.Sleep(20 * time.Second)
		before := map[<-chan struct{}]bool{}
		for n := range int64(suspends) {
			before[<-anchors] = true
			if late := w.once(1000+n) - time.Hour; late > 10*time.Millisecond {
				w.Errorf("the scan came %v after the suspend", late)
			}
		}
		if before[e.Bounds.Anchored()] || len(before) != suspends {
			w.Errorf("%d anchors over %d suspends, want a new one after each", len(before), suspends)
		}
	})
}

func TestResultWaitsForTheClockRatherThanBeWrittenWithoutATime(t *testing.T) {
	inBubble(t, func(w *world) {
		var e *Engine
		calls := 0
		e = w.engine(w.store, serving{
			"snooze": func(context.Context, *delaytask.Task) error {
				if calls++; calls == 1 {
					e.Bounds.Drop()
					return processor.Snooze(time.Hour)
				}
				return nil
			},
			"done": func(context.Context, *delaytask.Task) error { e.Bounds.Drop(); return nil },
		})
		snoozed, done := w.save(e, "snooze", 0), w.save(e, "done", 3*time.Second)
		time.Sleep(30 * time.Second)
		w.ran(snoozed, 1)
		if r := w.row(done); r.Status != row.Completed || r.Finish().IsZero() || r.Due.IsZero() {
			w.Errorf("completed without its times: %+v", r)
		}
	})
}

// A clock is read in 30 ms here, so it has no anchor when the timer fires (before the task is due, by the lead), and
// none when the claimed task is to start.
func TestStartsGoOnSoonAfterTheClockHasLostItsAnchor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(slow(w.store, "Now", 30*time.Millisecond), serving{"a": nothing})
		for range 10 { // the readings that come by themselves are taken in other moments each time
			for _, ms := range []time.Duration{10, 20, 300} {
				before := ms * time.Millisecond
				time.Sleep(3 * time.Second)
				id := w.save(e, "a", 2*time.Second)
				time.Sleep(time.Until(w.row(id).Due.Std()) - before)
				reading, err := w.store.Now(w.Context())
				w.must(err)
				reading.Time = reading.Time.Add(time.Minute) // of a server that took over
				e.Observe(reading, time.Now(), time.Now())
				time.Sleep(2 * time.Second)
				if late := w.once(id); late > 100*time.Millisecond {
					w.Errorf("started %v late after the anchor was lost %v before it was due", late, before)
				}
			}
		}
	})
}

// calls counts the calls of a method.
func calls(of store.Store, method string) (counted store.Store, n *atomic.Int64) {
	n = new(atomic.Int64)
	return at(of, method, func(_ context.Context, do func() error) error {
		n.Add(1)
		return do()
	}), n
}

// TestManyNodesLookForOverdueTasksSeldom runs something all the time, or each node would look seldom anyway.
func TestManyNodesLookForOverdueTasksSeldom(t *testing.T) {
	f := func(nodes int, least, most int64) {
		t.Helper()
		inBubble(t, func(w *world) {
			counted, looks := calls(w.store, "Due")
			for range nodes - 1 {
				w.engine(w.store, serving{"b": nothing})
			}
			e := w.engine(counted, serving{"a": untilEnd(20*time.Second, nil)})
			w.save(e, "a", 0)
			time.Sleep(3 * time.Second)
			before := looks.Load()
			time.Sleep(10 * time.Second)
			if n := looks.Load() - before; n < least || n > most {
				w.Errorf("one of %d nodes has read due rows %d times in 10 s, want %d to %d", nodes, n, least, most)
			}
			time.Sleep(10 * time.Second)
		})
	}
	f(1, 100, 130)
	f(8, 100, 130)
	f(30, 25, 50)
}

func TestTheClockIsReadAsNodesAndClaimsLeaveIt(t *testing.T) {
	const span = 10 * time.Second
	f := func(nodes int, each time.Duration, least, most int64) {
		t.Helper()
		inBubble(t, func(w *world) {
			counted, reads := calls(w.store, "Now")
			for range nodes - 1 {
				w.engine(w.store, serving{"b": nothing})
			}
			e := w.engine(counted, serving{"a": nothing})
			for due := time.Second; due < 2*span; due += each {
				w.save(e, "a", due)
			}
			time.Sleep(3 * time.Second)
			before := reads.Load()
			time.Sleep(span)
			if n := reads.Load() - before; n < least || n > most {
				w.Errorf("%d nodes, a task each %v: the clock was read %d times in %v, want %d to %d",
					nodes, each, n, span, least, most)
			}
			time.Sleep(span)
		})
	}
	f(1, 500*time.Millisecond, 500, 640) // every 50 ms, three in a row
	f(8, 500*time.Millisecond, 500, 640) // the same
	f(30, 500*time.Millisecond, 40, 60)  // every 0.2 s, unless a claim has read it
	f(1, 20*time.Millisecond, 500, 640)  // claims read it less exactly
	f(30, 20*time.Millisecond, 9, 40)    // claims read it
	f(1, time.Hour, 9, 12)               // nothing is due
}
