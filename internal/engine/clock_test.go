package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

func TestTasksObeyTheDatabasesClock(t *testing.T) {
	for _, offset := range []time.Duration{-time.Hour, 3 * time.Hour, 400 * time.Millisecond} {
		t.Run(offset.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.runs.offset = offset
				w.store.SetOffset(offset)
				e := w.engine(w.store, map[string]processor.Func{"a": nothing})
				other := w.idle(w.store, nil)
				time.Sleep(3 * time.Second)
				began := time.Now()
				own, foreign := w.save(e, "a", 3*time.Second), w.save(other, "a", 4*time.Second)
				time.Sleep(10 * time.Second)
				for id, delay := range map[int64]time.Duration{own: 3 * time.Second, foreign: 4 * time.Second} {
					runs := w.runs.of(id)
					if len(runs) != 1 {
						w.Fatalf("started %v", runs)
					}
					if late := runs[0].at.Sub(began) - delay; late < 0 || late > 3*time.Millisecond {
						w.Errorf("started %v", runs)
					}
				}
			})
		})
	}
}

// TestFailoverToAnotherClock steps the database's clock. Leases and due times are the new clock's from then on.
func TestFailoverToAnotherClock(t *testing.T) {
	// Several of each: where in their rounds the step meets the readings and the rescue is left to chance.
	ahead, back := 20*time.Second, -20*time.Second
	for i, step := range []time.Duration{back, ahead, ahead, ahead, ahead, ahead, ahead, ahead, ahead} {
		t.Run(fmt.Sprint(step, i), func(t *testing.T) {
			inBubble(t, func(w *world) {
				e := w.engine(w.store, map[string]processor.Func{"a": nothing, "long": untilEnd(9*time.Second, nil)})
				time.Sleep(3 * time.Second)
				long := w.save(e, "long", 0)
				id := w.save(e, "a", 30*time.Second)
				time.Sleep(5 * time.Second)
				w.store.SetOffset(step)
				w.store.SetServer("other")
				w.runs.mu.Lock()
				w.runs.offset = step
				w.runs.mu.Unlock()
				time.Sleep(time.Minute)
				if r := w.row(id); r.Status != row.Completed || len(w.runs.of(id)) != 1 {
					w.Errorf("row: %+v", r)
				}
				if r := w.row(long); r.Status != row.Completed || r.CrashCount != 0 || len(w.runs.of(long)) != 1 {
					w.Errorf("a running task's lease was ended by the step: %+v", r)
				}
				fresh := w.save(e, "a", 3*time.Second)
				time.Sleep(6 * time.Second)
				if got := w.row(fresh); got.Status != row.Completed || got.Execution.Sub(got.Expected) > 3*time.Millisecond {
					w.Errorf("after the failover: %+v", got)
				}
			})
		})
	}
}

func TestNoStartWithoutAnAnchor(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", time.Second)
		time.Sleep(970 * time.Millisecond) // claimed ahead by now
		e.clock.Drop()
		w.store.SetOffset(-5 * time.Second)
		w.runs.mu.Lock()
		w.runs.offset = -5 * time.Second
		w.runs.mu.Unlock()
		time.Sleep(15 * time.Second)
		if n := len(w.runs.of(id)); n != 1 {
			w.Errorf("started %d times", n)
		}
	})
}

// A claim is the first to hear of the server that took over: there is no anchor when its rows are to start.
func TestClaimThatCostsTheClockItsAnchorStartsNothingEarly(t *testing.T) {
	inBubble(t, func(w *world) {
		var failover sync.Once
		e := w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			failover.Do(func() {
				w.store.SetOffset(-5 * time.Second)
				w.runs.mu.Lock()
				defer w.runs.mu.Unlock()
				w.runs.offset = -5 * time.Second
			})
			return w.store.Claim(ctx, c)
		}}, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", time.Second)
		time.Sleep(15 * time.Second)
		if n := len(w.runs.of(id)); n != 1 {
			w.Errorf("started %d times", n)
		}
	})
}

func TestALostAnchorIsReplacedAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		for range 5 { // the readings that come by themselves are a second apart
			time.Sleep(3 * time.Second)
			reading, err := w.store.Now(w.Context())
			if err != nil {
				w.Fatal(err)
			}
			reading.Time = reading.Time.Add(time.Minute) // of a server that took over
			e.heard(reading, time.Now(), time.Now())
			time.Sleep(10 * time.Millisecond)
			if _, anchored := e.clock.AtLeast(); !anchored {
				w.Error("there is no anchor 10 ms after the last one was lost")
			}
		}
	})
}

func TestAWrongClockOfThisMachineIsSaidOnceAtTheStart(t *testing.T) {
	inBubble(t, func(w *world) {
		w.store.SetOffset(time.Minute)
		var log bytes.Buffer
		e := w.idle(w.store, nil, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		if got := strings.Count(log.String(), "clock is off"); got != 1 || !strings.Contains(log.String(), "skew=-1m") {
			w.Errorf("said %d times: %s", got, log.String())
		}
		time.Sleep(10 * time.Second)
		if err := e.Stop(w.Context()); err != nil {
			w.Fatal(err)
		}
		if got := strings.Count(log.String(), "clock is off"); got != 1 {
			w.Errorf("said %d times", got)
		}
	})
}

// TestSuspendDropsTheAnchorAndScansAtOnce reports suspends in the place of the real gap: in a bubble no clock gains on another.
func TestSuspendDropsTheAnchorAndScansAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(3 * time.Second)
		const suspends = 5
		anchors := make(chan (<-chan struct{}), suspends) // as they were before each
		ctx, cancel := context.WithCancel(e.life)
		defer cancel()
		e.goFunc(func() {
			e.readClock(ctx, func() (time.Duration, bool) {
				n := len(anchors)
				if n == suspends {
					return 0, false
				}
				// Overdue for so long a row is the scan's alone.
				w.plain(1000+int64(n), "a", row.At(time.Now().Add(-time.Hour)))
				anchors <- e.clock.Anchored()
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
		if before[e.clock.Anchored()] || len(before) != suspends {
			w.Errorf("%d anchors over %d suspends, want a new one after each", len(before), suspends)
		}
	})
}
