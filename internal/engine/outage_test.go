package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

// TestScanComesAgainAfterACallWithoutAnAnswer lets the scan ask without an answer, and looks for a row that only a
// scan can find.
func TestScanComesAgainAfterACallWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(w *world) {
		store := newRemote(w.store, true)
		w.engine(store, serving{"a": nothing}, func(c *Config) { c.CallTimeout = 3 * time.Second })
		time.Sleep(7 * time.Second)
		store.away.Store(true)
		time.Sleep(20 * time.Second)
		store.away.Store(false)
		time.Sleep(10 * time.Second)
		w.plain(1, "a", row.At(time.Now().Add(-time.Minute)))
		time.Sleep(6 * time.Second)
		w.standing(row.Completed, 1, 0, 1)
	})
}

func TestOutageIsWaitedForWithoutSpinning(t *testing.T) {
	inBubbles(t, map[string]bool{"Refused": false, "Hanging": true}, func(w *world, hangs bool) {
		store := newRemote(w.store, hangs)
		e := w.engine(
			store,
			serving{"a": untilEnd(20*time.Second, nil), "b": nothing},
			func(c *Config) { c.TTR = 2 * time.Minute },
		)
		time.Sleep(5 * time.Second)
		ids := w.saveMany(e, "a", 10) // its results fall into the outage
		for i := range 100 {
			ids = append(ids, w.save(e, "b", time.Second+time.Duration(i)*300*time.Millisecond))
		}
		time.Sleep(500 * time.Millisecond)
		store.away.Store(true)
		const lasts = 60
		time.Sleep(lasts * time.Second)
		if calls := store.refused.Load(); calls > 40*lasts {
			w.Errorf("%d calls in an outage of %d s", calls, lasts)
		}
		if e.Ready(w.Context()) == nil {
			w.Error("it is ready without a database")
		}
		store.away.Store(false)
		time.Sleep(20 * time.Second)
		if e.Ready(w.Context()) != nil {
			w.Error("it is not ready although the database is back")
		}
		w.standing(row.Completed, 1, 0, ids...)
	})
}

// TestTasksThatFailedTogetherDoNotComeBackTogether draws the waits of many processes whose calls were refused at one
// moment.
func TestTasksThatFailedTogetherDoNotComeBackTogether(t *testing.T) {
	t.Parallel()
	const processes = 1000
	for n, want := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000} {
		want *= time.Millisecond
		waits := make([]time.Duration, processes)
		for i := range waits {
			waits[i] = lifecycle.Backoff(n)
		}
		slices.Sort(waits)
		if first, last := waits[0], waits[processes-1]; first < want/2 || last > want*3/2 {
			t.Errorf("repetition %d: waits of %v to %v, want half to one and a half times %v", n, first, last, want)
		}
		// Evenly drawn, a fifth of them comes back within a fifth of the time; half of that is far beyond chance.
		for i := 0; i+processes/5 < processes; i++ {
			if within := waits[i+processes/5] - waits[i]; within < want/10 {
				t.Errorf("repetition %d: a fifth of all comes back within %v of %v", n, within, want)
				break
			}
		}
	}
}

// moments are when outages end, spread over the intervals of the passes.
func moments() (all []time.Duration) {
	for i := range 8 {
		all = append(all, time.Duration(i)*317*time.Millisecond)
	}
	return all
}

// TestOutageLongerThanTheLeasesCostsNoCrash lets the database be away from three nodes for twice the length of a lease.
func TestOutageLongerThanTheLeasesCostsNoCrash(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		inBubblesOf(t, moments(), func(w *world, moment time.Duration) {
			const ttr = 15 * time.Second
			store := newRemote(w.store, hangs)
			var ids []int64
			var nodes []*Engine
			for range 3 {
				nodes = append(nodes, w.engine(store, serving{"a": untilEnd(20*time.Second, nil)},
					func(c *Config) { c.TTR, c.CallTimeout, c.Concurrency = ttr, 3*time.Second, 20 }))
			}
			time.Sleep(5 * time.Second)
			for n := range 50 {
				ids = append(ids, w.save(nodes[n%3], "a", 3*time.Second))
			}
			time.Sleep(5 * time.Second)
			if n := w.executing(ids); n != 50 {
				w.Fatalf("%d tasks run, want 50", n)
			}
			store.away.Store(true)
			time.Sleep(2*ttr + moment)
			store.away.Store(false)
			time.Sleep(time.Minute)
			w.standing(row.Completed, 1, 0, ids...)
		})
	}
}

// No node could send a heartbeat in an outage. A row without a share after it would be left to nodes that are not
// there.
func TestRowsOfASingleNodeAreItsOwnAfterAnOutage(t *testing.T) {
	inBubblesOf(t, moments(), func(w *world, moment time.Duration) {
		store := newRemote(w.store, false)
		e := w.engine(store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		store.away.Store(true)
		time.Sleep(10*time.Second + moment)
		store.away.Store(false)
		for back := time.Now(); time.Since(back) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
			if !e.arm.Shared(1, "a") {
				w.Fatalf("%v after the outage a row is not the node's own", time.Since(back))
			}
		}
	})
}

// TestOutagesInARowPutOffARescueForAWhileOnly has a database that is away again before a renewal interval is over.
func TestOutagesInARowPutOffARescueForAWhileOnly(t *testing.T) {
	inBubble(t, func(w *world) {
		store := newRemote(w.store, false)
		dying := w.engine(w.store, serving{"a": untilEnd(time.Hour, nil)})
		id := w.save(dying, "a", 0)
		time.Sleep(5 * time.Second)
		w.engine(store, serving{"a": nothing})
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
