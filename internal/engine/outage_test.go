package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// TestOutageLongerThanTheLeasesCostsNoCrash lets the database be away from three nodes for twice the length of a lease. Every
// moment of the recovery has its turn among the rhythms of the passes.
func TestOutageLongerThanTheLeasesCostsNoCrash(t *testing.T) {
	for i := range 8 {
		for name, hangs := range map[string]bool{"Refused": false, "Hanging": true} {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				inBubble(t, func(w *world) {
					const ttr = 15 * time.Second
					store := &remote{Store: w.store}
					store.hangs.Store(hangs)
					var nodes []*Engine
					for range 3 {
						nodes = append(nodes, w.engine(store, map[string]processor.Func{"a": untilEnd(20*time.Second, nil)},
							func(c *Config) { c.TTR, c.CallTimeout, c.Workers = ttr, 3*time.Second, 20 }))
					}
					time.Sleep(5 * time.Second)
					var ids []int64
					for n := range 50 {
						ids = append(ids, w.save(nodes[n%3], "a", 3*time.Second))
					}
					time.Sleep(5 * time.Second)
					if n := w.executing(ids); n != 50 {
						w.Fatalf("%d tasks run, want 50", n)
					}
					store.away.Store(true)
					time.Sleep(2*ttr + time.Duration(i)*317*time.Millisecond)
					store.away.Store(false)
					time.Sleep(time.Minute)
					for _, id := range ids {
						if r := w.row(id); r.Status != row.Completed || r.Attempt != 1 || r.CrashCount != 0 {
							w.Errorf("task %d: %v, attempt %d, %d crashes, %s", id, r.Status, r.Attempt, r.CrashCount, r.Errors)
						}
					}
				})
			})
		}
	}
}

func TestNodeThatDiesInAnOutageIsRescuedSoonAfter(t *testing.T) {
	inBubble(t, func(w *world) {
		store := &remote{Store: w.store}
		long := func(ctx context.Context, _ *processor.Task) error { <-ctx.Done(); return context.Cause(ctx) }
		dying := w.engine(store, map[string]processor.Func{"a": long})
		time.Sleep(2 * time.Second)
		id := w.save(dying, "a", 0)
		time.Sleep(time.Second)
		w.engine(store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		store.away.Store(true)
		time.Sleep(5 * time.Second)
		w.crash(dying)
		time.Sleep(25 * time.Second)
		store.away.Store(false)
		back := time.Now()
		time.Sleep(20 * time.Second)
		r, runs := w.row(id), w.runs.of(id)
		if r.Status != row.Completed || r.CrashCount != 1 || r.Attempt != 1 || len(runs) != 2 {
			w.Fatalf("%d runs, row %+v", len(runs), r)
		}
		// A renewal interval, the next reading of the clock before it and the next pass after it.
		if late := runs[1].at.Sub(back); late > 9*time.Second {
			w.Errorf("rescued %v after the database was back", late)
		}
	})
}

// TestOutagesInARowPutOffARescueForAWhileOnly has a database that is away again before a renewal interval is over.
func TestOutagesInARowPutOffARescueForAWhileOnly(t *testing.T) {
	inBubble(t, func(w *world) {
		store := &remote{Store: w.store}
		dying := w.engine(w.store, map[string]processor.Func{"a": untilEnd(time.Hour, nil)})
		id := w.save(dying, "a", 0)
		time.Sleep(5 * time.Second)
		w.engine(store, map[string]processor.Func{"a": nothing})
		w.crash(dying)
		time.Sleep(time.Until(w.row(id).Due.Std()))
		for range 5 {
			store.away.Store(true)
			time.Sleep(5500 * time.Millisecond)
			store.away.Store(false)
			time.Sleep(2500 * time.Millisecond)
		}
		if r := w.row(id); r.CrashCount != 1 {
			w.Errorf("40 s after the lease's end it is %v, with %d crashes", r.Status, r.CrashCount)
		}
	})
}

func TestOutageIsASilenceThatALeaseMayNotOutlive(t *testing.T) {
	o := newOutage(15 * time.Second)
	at := bubbleTime
	hear := func(after time.Duration, want bool) {
		t.Helper()
		at = at.Add(after)
		if _, over := o.answered(at); over != want {
			t.Errorf("an answer after %v ends an outage: %t, want %t", after, over, want)
		}
	}
	hear(0, false)
	hear(4900*time.Millisecond, false)
	if o.holds(at) {
		t.Error("it holds without an outage")
	}
	hear(5*time.Second, true)
	if _, over := o.answered(at.Add(-time.Second)); over {
		t.Error("an answer that arrived late ends an outage")
	}
	hear(time.Second, false)
	if !o.holds(at.Add(3900*time.Millisecond)) || o.holds(at.Add(4*time.Second)) {
		t.Error("it holds for another time than 5 s from when the database was back")
	}
}
