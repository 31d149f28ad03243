package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// plain is what an INSERT by hand leaves: a small id of the table's own, and perhaps no due time.
func (w *world) plain(id int64, tag string, due row.Time) int64 {
	w.store.Plant(row.Row{ID: id, Tag: tag, Body: []byte("{}"), Due: due, Expected: due, TTR: 15 * time.Second, MaxAttempts: 20})
	return id
}

func TestLostTimersAreCaughtUp(t *testing.T) {
	for name, c := range map[string]struct {
		overdue time.Duration // when it is found
		late    time.Duration // how much later it may start
	}{
		"Ahead":    {-2500 * time.Millisecond, 2 * time.Millisecond},
		"Peek":     {0, 550 * time.Millisecond},
		"LongAgo":  {time.Hour, 6 * time.Second},
		"VeryLong": {1000 * time.Hour, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.engine(w.store, map[string]processor.Func{"a": nothing})
				time.Sleep(7 * time.Second)
				id := w.plain(1000, "a", row.At(time.Now().Add(-c.overdue)))
				time.Sleep(15 * time.Second)
				w.completed(id, max(c.overdue, 0)+c.late)
			})
		})
	}
}

func TestScanComesAsOftenAsItIsSet(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, map[string]processor.Func{"a": nothing}, func(c *Config) { c.ScanEvery = time.Second })
		time.Sleep(7 * time.Second)
		id := w.plain(1000, "a", row.At(time.Now().Add(-time.Hour)))
		time.Sleep(15 * time.Second)
		w.completed(id, time.Hour+1100*time.Millisecond)
	})
}

// TestBusyNodePeeksOften saves in a process that serves nothing: only the peek finds what is due at once.
func TestBusyNodePeeksOften(t *testing.T) {
	for name, c := range map[string]struct {
		runs  time.Duration // of a task that keeps the node busy
		every time.Duration // between two saves
	}{
		"WhileATaskRuns":              {time.Minute, 1700 * time.Millisecond},
		"ForASecondAfterItFoundATask": {0, 350 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				e := w.engine(w.store, map[string]processor.Func{"a": nothing, "long": untilEnd(c.runs, nil)})
				producer := w.idle(w.store, nil)
				time.Sleep(5 * time.Second)
				w.save(e, "long", 0)
				var ids []int64
				for range 30 {
					ids = append(ids, w.save(producer, "a", 0))
					time.Sleep(c.every)
				}
				for _, id := range ids[5:] { // the first ones wake it up
					w.completed(id, 250*time.Millisecond)
				}
			})
		})
	}
}

func TestPeekLeavesRowsOfOthersToThemForAMoment(t *testing.T) {
	const rows = 20
	for overdueBy, wants := range map[time.Duration]func(n int) bool{
		50 * time.Millisecond:  func(n int) bool { return n == 0 }, // somebody has them in hand
		150 * time.Millisecond: func(n int) bool { return n > 0 && n < rows },
		250 * time.Millisecond: func(n int) bool { return n == rows },
	} {
		t.Run(overdueBy.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				e := w.idle(w.store, map[string]processor.Func{"a": nothing})
				e.tags.run(true)
				e.arm.look(viewOf("a", "this", "other"))
				for id := range int64(rows) {
					w.plain(1000+id, "a", e.now().Add(-overdueBy))
				}
				if err := e.peek.runOnce(w.Context()); err != nil {
					w.Fatal(err)
				}
				if n := len(e.hands.lines.waiting); !wants(n) {
					w.Errorf("took %d of %d rows of two nodes", n, rows)
				}
			})
		})
	}
}

func TestLookAheadReadsAllOfItsWindow(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, map[string]processor.Func{"a": nothing})
		e.tags.run(true)
		const rows = 2*lookAheadRows + 1
		due := e.now().Add(1900 * time.Millisecond)
		for id := range int64(rows) {
			w.plain(1000+id, "a", due)
		}
		if err := e.lookahead.runOnce(w.Context()); err != nil {
			w.Fatal(err)
		}
		if n := e.hands.timers(); n != rows {
			w.Errorf("armed %d rows of %d", n, rows)
		}
	})
}

// TestPeekIsNotFilledByATagWithoutAFreeSlot leaves only the peek to find anything within a second.
func TestPeekIsNotFilledByATagWithoutAFreeSlot(t *testing.T) {
	inBubble(t, func(w *world) {
		cfg := func(c *Config) {
			c.Workers, c.LookAhead, c.Window = 2, time.Minute, 2*time.Minute
			if err := c.Registry.Register("full", processor.Func(untilEnd(20*time.Second, nil)), processor.Concurrency(1)); err != nil {
				w.Fatal(err)
			}
		}
		e := w.engine(w.store, map[string]processor.Func{"free": nothing}, cfg)
		w.save(e, "full", 0)
		time.Sleep(3 * time.Second)
		now := time.Now()
		for i := range 2 * peekRows {
			w.plain(int64(i+1), "full", row.At(now.Add(-300*time.Millisecond)))
		}
		id := w.plain(5000, "free", row.At(now.Add(-200*time.Millisecond)))
		time.Sleep(15 * time.Second)
		w.completed(id, 350*time.Millisecond)
	})
}

func TestRowWithoutADueTimeIsAdopted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(3 * time.Second)
		inserted := time.Now()
		now := w.plain(1000, "a", 0)
		r := row.Row{ID: 1001, Tag: "a", Expected: row.At(inserted.Add(10 * time.Second)), TTR: 15 * time.Second}
		w.store.Plant(r)
		time.Sleep(20 * time.Second)
		w.completed(now, 2*time.Second)
		w.completed(1001, 2*time.Millisecond)
		if late := w.runs.of(now)[0].at.Sub(inserted); late > 2*time.Second {
			w.Errorf("started %v after the insert", late)
		}
	})
}

func TestLockedRowWithoutADueTimeHoldsUpNobody(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, map[string]processor.Func{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(3 * time.Second)
		w.plain(1000, "a", 0)
		unlock := w.store.Lock(1000)
		time.Sleep(2 * time.Second)
		var ids []int64
		for range 10 {
			ids = append(ids, w.save(other, "a", 5*time.Second))
			time.Sleep(time.Second)
		}
		overdue := w.plain(1001, "a", row.At(time.Now().Add(-time.Hour)))
		time.Sleep(8 * time.Second)
		for _, id := range ids {
			w.completed(id, 50*time.Millisecond)
		}
		w.once(overdue)
		unlock()
		time.Sleep(7 * time.Second)
		w.once(1000)
	})
}

func TestTagWithoutAProcessorIsLeftAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		foreign := w.save(e, "nobody", 0)
		served := w.save(e, "a", 0)
		time.Sleep(20 * time.Second)
		w.completed(served, 10*time.Millisecond)
		if r := w.row(foreign); r.Version != 0 || r.Status != row.Pending {
			w.Errorf("row: %+v", r)
		}
		if err := e.cfg.Registry.Register("nobody", w.runs.note(nothing)); err != nil {
			w.Fatal(err)
		}
		e.Registered()
		time.Sleep(7 * time.Second)
		if r := w.row(foreign); r.Status != row.Completed {
			w.Errorf("registered later: %+v", r)
		}
	})
}

func TestRestartWithABacklogIsOnTimeForNewTasks(t *testing.T) {
	inBubble(t, func(w *world) {
		const backlog = 100_000
		past := row.At(time.Now().Add(-time.Hour))
		for i := range int64(backlog) {
			w.plain(1000+i, "old", past+row.Time(i))
		}
		busy := func(context.Context, *processor.Task) error { time.Sleep(20 * time.Millisecond); return nil }
		slow := func(context.Context, *processor.Task) error { time.Sleep(time.Minute); return nil }
		e := w.engine(w.store, map[string]processor.Func{"old": busy, "new": busy, "slow": slow})
		time.Sleep(time.Second)
		var ids []int64
		for i := range 300 {
			tag := "new"
			if i%3 == 0 {
				tag = "old"
			}
			ids = append(ids, w.save(e, tag, 2500*time.Millisecond))
			time.Sleep(5 * time.Millisecond)
		}
		if room := e.hands.room("old"); room < 0 {
			w.Errorf("%d overdue rows of a tag are in memory, the bound is %d", backlogPerTag-room, backlogPerTag)
		}
		time.Sleep(4 * time.Second)
		for _, id := range ids {
			w.completed(id, 100*time.Millisecond) // each waits for a few of those that run, not for the backlog
		}
		done, _, _ := w.store.List(w.Context(), row.Filter{Tag: "old", Status: new(row.Completed), Limit: backlog}, false)
		if len(done) < 10_000 {
			w.Errorf("beside the new tasks only %d of the backlog were run", len(done))
		}
	})
}

func TestOnlyTheTagThatIsOverloadedWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"quick": nothing})
		slow := w.runs.note(untilEnd(10*time.Second, nil))
		if err := e.cfg.Registry.Register("slow", slow, processor.Concurrency(2)); err != nil {
			w.Fatal(err)
		}
		e.Registered()
		producer := w.idle(w.store, nil)
		time.Sleep(2 * time.Second)
		for range 20 {
			for range 60 {
				w.save(e, "slow", 0)
			}
			own, foreign := w.save(e, "quick", 100*time.Millisecond), w.save(producer, "quick", 0)
			time.Sleep(time.Second)
			w.completed(own, 5*time.Millisecond)
			w.completed(foreign, 600*time.Millisecond)
		}
	})
}

func TestStrayRowsOfThisProcessAreReleased(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(12*time.Second, nil)})
		time.Sleep(time.Second)
		running := w.save(e, "a", 0)
		stray := w.save(e, "b", 0)
		r := w.row(stray)
		r.Tag, r.Status, r.Version, r.Attempt, r.Executor = "a", row.Executing, 1, 1, e.passes.executor+":999"
		r.Due = row.At(time.Now()).Add(r.TTR)
		w.store.Plant(r)
		time.Sleep(6 * time.Second)
		if n := len(w.runs.of(stray)); n != 1 {
			w.Errorf("the stray row was run %d times", n)
		}
		time.Sleep(30 * time.Second)
		w.completed(running, time.Second)
		if r := w.row(stray); r.Status != row.Completed || r.Attempt != 1 {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestPurgeKeepsToItsRetention(t *testing.T) {
	inBubble(t, func(w *world) {
		var now time.Time
		e := w.engine(w.store, map[string]processor.Func{"a": nothing}, func(c *Config) {
			c.Retention = Retention{Completed: 10 * time.Minute, Failed: 20 * time.Minute} // cancelled ones for ever
		})
		done, cancelled := w.save(e, "a", 0), w.save(e, "a", time.Hour)
		if _, err := e.Cancel(w.Context(), nil, Ref{ID: cancelled}, false); err != nil {
			w.Fatal(err)
		}
		failed := w.plain(1000, "a", row.At(time.Now()))
		r := w.row(failed)
		r.Status = row.Failed
		w.store.Plant(r)
		now = time.Now()
		for _, c := range []struct {
			at         time.Duration
			done, fail bool
		}{{9 * time.Minute, true, true}, {11 * time.Minute, false, true}, {21 * time.Minute, false, false}} {
			time.Sleep(time.Until(now.Add(c.at)))
			if w.exists(done) != c.done || w.exists(failed) != c.fail || !w.exists(cancelled) {
				w.Errorf("after %v: completed %t, failed %t, cancelled %t",
					c.at, w.exists(done), w.exists(failed), w.exists(cancelled))
			}
		}
	})
}

func TestProcessTaskRunsAPendingTaskAndNothingElse(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, map[string]processor.Func{"a": untilEnd(50*time.Millisecond, nil)})
		time.Sleep(time.Second)
		id := w.plain(1000, "a", row.At(time.Now().Add(-time.Millisecond)))
		early := w.plain(1001, "a", row.At(time.Now().Add(time.Hour)))
		for range 3 {
			for _, each := range []int64{id, early, 4711} {
				if err := e.processTask(w.Context(), each); err != nil {
					w.Error(err)
				}
			}
			time.Sleep(30 * time.Millisecond)
		}
		w.completed(id, 5*time.Millisecond)
		if n := len(w.runs.of(early)); n != 0 {
			w.Errorf("a task that is not due was run %d times", n)
		}
	})
}

// Rows that are in hand fill the page of strays.
func TestAStrayBehindManyRowsInHand(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		due := row.At(time.Now())
		const n = scanPage + 20
		for id := range int64(n) {
			w.store.Plant(row.Row{ID: 1 + id, Tag: "a", Body: []byte("{}"), Due: due, Expected: due, TTR: time.Hour, MaxAttempts: 20})
		}
		for got := 0; got < n; {
			tasks, err := e.Pop(w.Context(), PopRequest{Tags: []string{"a"}, Max: n - got, Waits: true, Wait: 10 * time.Second})
			if err != nil || len(tasks) == 0 {
				w.Fatalf("popped %d, then %v", got, err)
			}
			got += len(tasks)
		}
		// A claim for a pop whose reply was lost, and that was applied after all.
		late := row.At(time.Now())
		w.store.Plant(row.Row{
			ID: 10_000, Tag: "a", Body: []byte("{}"), Due: late.Add(time.Hour + time.Minute), Expected: late, TTR: time.Hour, MaxAttempts: 20,
			Status: row.Executing, Version: 1, Attempt: 1, Executor: row.PopMark + e.claimer.executor + ":999999",
		})
		time.Sleep(12 * time.Second)
		if r := w.row(10_000); r.Status != row.Pending {
			w.Errorf("the stray is still %v after two scans, for as long as its lease lasts", r.Status)
		}
	})
}

// misnumbered has rows with ids that no process can name, until they are given others.
type misnumbered struct {
	Store
	rows int
}

func (m *misnumbered) Renumber(context.Context, int64, func() int64, int) (moved int, mend string, err error) {
	moved, m.rows = m.rows, 0
	return moved, "MEND", nil
}

func TestRowsThatHadToBeNumberedAreWarnedOfForMinutes(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(&misnumbered{w.store, 2}, nil)
		time.Sleep(warnedFor)
		if got := e.Warning(); !strings.HasSuffix(got, ": MEND") {
			t.Errorf("it warns %q", got)
		}
		time.Sleep(10 * time.Second)
		if got := e.Warning(); got != "" {
			t.Errorf("it still warns %q", got)
		}
	})
}

// beyond is a store with rows that have ids beyond the last one.
type beyond struct {
	Store
	rows atomic.Int64
}

func (s *beyond) Renumber(_ context.Context, _ int64, _ func() int64, limit int) (moved int, mend string, err error) {
	moved = min(limit, int(s.rows.Load()))
	s.rows.Add(-int64(moved))
	return moved, "", nil
}

func TestOnePassGivesAllRowsBeyondTheLastIDAnother(t *testing.T) {
	inBubble(t, func(w *world) {
		db := &beyond{Store: w.store}
		w.engine(db, nil)
		time.Sleep(time.Minute)
		db.rows.Store(4*scanPage + 1)
		time.Sleep(6 * time.Second)
		if n := db.rows.Load(); n > 0 {
			w.Errorf("%d rows still wait for an id after one pass", n)
		}
	})
}
