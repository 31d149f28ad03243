package engine

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

func TestLostTimersAreCaughtUp(t *testing.T) {
	type timer struct {
		overdue time.Duration // when it is found
		late    time.Duration // how much later it may start
		scan    time.Duration // comes so often
	}
	inBubbles(t, map[string]timer{
		"Ahead":      {-2500 * time.Millisecond, 2 * time.Millisecond, 5 * time.Second},
		"Peek":       {0, 550 * time.Millisecond, 5 * time.Second},
		"LongAgo":    {time.Hour, 6 * time.Second, 5 * time.Second},
		"VeryLong":   {1000 * time.Hour, 6 * time.Second, 5 * time.Second},
		"ScansOften": {time.Hour, 1100 * time.Millisecond, time.Second},
	}, func(w *world, c timer) {
		w.engine(w.store, serving{"a": nothing}, func(cfg *Config) { cfg.ScanEvery = c.scan })
		time.Sleep(7 * time.Second)
		id := w.plain(1000, "a", row.At(time.Now().Add(-c.overdue)))
		time.Sleep(15 * time.Second)
		w.completed(id, max(c.overdue, 0)+c.late)
	})
}

// TestBusyNodePollsOften saves in a process that serves nothing: only the peek finds what is due at once.
func TestBusyNodePollsOften(t *testing.T) {
	type busy struct {
		runs  time.Duration // of a task that keeps the node busy
		every time.Duration // between two saves
	}
	inBubbles(t, map[string]busy{
		"WhileATaskRuns":              {time.Minute, 1700 * time.Millisecond},
		"ForASecondAfterItFoundATask": {0, 350 * time.Millisecond},
	}, func(w *world, c busy) {
		e := w.engine(w.store, serving{"a": nothing, "long": untilEnd(c.runs, nil)})
		producer := w.idle(w.store, nil)
		time.Sleep(5 * time.Second)
		w.save(e, "long", 0)
		var ids []int64
		for range 30 {
			ids = append(ids, w.save(producer, "a", 0))
			time.Sleep(c.every)
		}
		w.allCompleted(ids[5:], 250*time.Millisecond) // the first ones wake it up
	})
}

func TestOverduePollLeavesRowsToOtherNodesForAMoment(t *testing.T) {
	const rows = 20
	type look struct {
		overdue     time.Duration
		least, most int
	}
	inBubbles(t, map[string]look{
		"AnotherProcessHasThem": {50 * time.Millisecond, 0, 0},
		"ItsOwn":                {150 * time.Millisecond, 1, rows - 1},
		"All":                   {250 * time.Millisecond, rows, rows},
	}, func(w *world, c look) {
		e := w.idle(w.store, serving{"a": nothing})
		e.readPaused(w.Context())
		e.arm.Tags.Run(true)
		e.arm.Look(viewOf("a", "this", "other"))
		w.backlog(rows, "a", e.Now().Add(-c.overdue))
		w.must(e.find.Poll.RunOnce(w.Context()))
		if n := e.runqueue.Counts().Waiting; n < c.least || n > c.most {
			w.Errorf("took %d of %d rows of two nodes", n, rows)
		}
	})
}

func TestLookAheadReadsAllOfItsWindow(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, serving{"a": nothing})
		e.readPaused(w.Context())
		e.arm.Tags.Run(true)
		const rows = 2*2000 + 1 // two full pages and a row
		due := e.Now().Add(1900 * time.Millisecond)
		for id := range int64(rows) {
			w.plain(1000+id, "a", due)
		}
		w.must(e.find.Lookahead.RunOnce(w.Context()))
		if n := e.runqueue.Counts().Timers; n != rows {
			w.Errorf("armed %d rows of %d", n, rows)
		}
	})
}

// TestOverduePollIsNotFilledByATagWithoutAFreeSlot leaves only the peek to find anything within a second.
func TestOverduePollIsNotFilledByATagWithoutAFreeSlot(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"free": nothing}, func(c *Config) {
			c.Concurrency, c.LookAhead, c.Window = 2, time.Minute, 2*time.Minute
			w.must(c.Registry.Register("full", untilEnd(20*time.Second, nil), processor.Concurrency(1)))
		})
		w.save(e, "full", 0)
		time.Sleep(3 * time.Second)
		now := time.Now()
		w.backlog(2*200, "full", row.At(now.Add(-300*time.Millisecond)))
		id := w.plain(5000, "free", row.At(now.Add(-200*time.Millisecond)))
		time.Sleep(15 * time.Second)
		w.completed(id, 350*time.Millisecond)
	})
}

func TestRowWithoutADueTimeIsAdopted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		inserted := time.Now()
		now := w.plain(1000, "a", 0)
		w.store.Plant(
			row.Row{ID: 1001, Tag: "a", Expected: row.At(inserted.Add(10 * time.Second)), TTR: 15 * time.Second},
		)
		time.Sleep(20 * time.Second)
		w.completed(now, 2*time.Second)
		w.completed(1001, 2*time.Millisecond)
		if late := w.runs.of(now)[0].at.Sub(inserted); late > 2*time.Second {
			w.Errorf("started %v after the insert", late)
		}
	})
}

func TestLockedRowWithoutADueTimeHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		w.engine(w.store, serving{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(3 * time.Second)
		w.plain(1000, "a", 0)
		w.plain(1002, "a", 0)
		unlock := w.store.Lock(1000)
		time.Sleep(2 * time.Second)
		var ids []int64
		for range 10 {
			ids = append(ids, w.save(other, "a", 5*time.Second))
			time.Sleep(time.Second)
		}
		overdue := w.plain(1001, "a", row.At(time.Now().Add(-time.Hour)))
		time.Sleep(8 * time.Second)
		w.allCompleted(ids, 50*time.Millisecond)
		w.once(overdue)
		w.once(1002)
		unlock()
		time.Sleep(7 * time.Second)
		w.once(1000)
	})
}

func TestTagWithoutAProcessorIsLeftAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		foreign, served := w.save(e, "nobody", 0), w.save(e, "a", 0)
		time.Sleep(20 * time.Second)
		w.completed(served, 10*time.Millisecond)
		if r := w.row(foreign); r.Version != 0 || r.Status != row.Pending {
			w.Errorf("row: %+v", r)
		}
		w.must(e.cfg.Registry.Register("nobody", w.runs.note(nothing)))
		e.Registered()
		time.Sleep(7 * time.Second)
		if r := w.row(foreign); r.Status != row.Completed {
			w.Errorf("registered later: %+v", r)
		}
	})
}

func TestRestartWithABacklogIsOnTimeForNewTasks(t *testing.T) {
	inBubble(t, func(w *world) {
		w.backlog(100_000, "old", row.At(time.Now().Add(-time.Hour)))
		busy := untilEnd(20*time.Millisecond, nil)
		e := w.engine(w.store, serving{"old": busy, "new": busy})
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
		if room := e.runqueue.Room("old"); room < 0 {
			w.Errorf("%d overdue rows of a tag are in memory, the bound is %d", backlogPerTag-room, backlogPerTag)
		}
		time.Sleep(4 * time.Second)
		w.allCompleted(ids, 100*time.Millisecond) // each waits for a few of those that run, not for the backlog
		if done := w.done("old"); done < 10_000 {
			w.Errorf("beside the new tasks only %d of the backlog were run", done)
		}
	})
}

func TestOnlyTheTagThatIsOverloadedWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"quick": nothing})
		slow := w.runs.note(untilEnd(10*time.Second, nil))
		w.must(e.cfg.Registry.Register("slow", slow, processor.Concurrency(2)))
		e.Registered()
		producer := w.idle(w.store, nil)
		time.Sleep(2 * time.Second)
		for range 20 {
			w.saveMany(e, "slow", 60)
			own, foreign := w.save(e, "quick", 100*time.Millisecond), w.save(producer, "quick", 0)
			time.Sleep(time.Second)
			w.completed(own, 5*time.Millisecond)
			w.completed(foreign, 600*time.Millisecond)
		}
	})
}

func TestOrphanedClaimsOfThisProcessAreReleased(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(12*time.Second, nil)})
		time.Sleep(time.Second)
		running := w.save(e, "a", 0)
		orphan := w.save(e, "b", 0)
		r := w.row(orphan)
		r.Tag, r.Status, r.Version, r.Attempt = "a", row.Executing, 1, 1
		r.Executor = row.Executor{Process: e.process.ID, Claim: 999}
		r.Due = row.At(time.Now()).Add(r.TTR)
		w.store.Plant(r)
		time.Sleep(6 * time.Second)
		w.ran(orphan, 1)
		time.Sleep(30 * time.Second)
		w.completed(running, time.Second)
		if r := w.row(orphan); r.Status != row.Completed || r.Attempt != 1 {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestPurgeKeepsToItsRetention(t *testing.T) {
	inBubble(t, func(w *world) {
		var now time.Time
		e := w.engine(w.store, serving{"a": nothing}, func(c *Config) {
			c.Retention.Completed, c.Retention.Failed = 10*time.Minute, 20*time.Minute // cancelled ones for ever
		})
		done, cancelled := w.save(e, "a", 0), w.save(e, "a", time.Hour)
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: cancelled}, false)
		w.must(err)
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

func TestEntriesOfTheAuditLogAreDeletedAfterTheirRetention(t *testing.T) {
	inBubbles(t, map[string]time.Duration{"for an hour": time.Hour, "for ever": 0}, func(w *world, keep time.Duration) {
		w.engine(w.store, nil, func(c *Config) { c.Retention.Audit = keep })
		const many = 2*500 + 1
		for range many {
			_, err := w.store.BeginAudit(w.Context(), row.AuditEntry{Action: "tag.pause"})
			w.must(err)
		}
		left := func(want int) {
			w.Helper()
			entries, err := w.store.AuditEntries(w.Context(), "", math.MaxInt64, 2*many)
			w.must(err)
			if len(entries) != want {
				w.Errorf("after %v there are %d entries, want %d", time.Since(bubbleTime), len(entries), want)
			}
		}
		time.Sleep(59 * time.Minute)
		left(many)
		time.Sleep(3 * time.Minute)
		if keep > 0 {
			left(0)
		} else {
			left(many)
		}
	})
}

// passPage is how many rows a pass reads at once.
const passPage = 500

// Owned rows fill the page of orphaned claims.
func TestOrphanedClaimBehindManyOwnedRows(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		w.saveMany(e, "a", passPage+20, delaytask.WithTTR(time.Hour))
		w.takeAll(e, "a", passPage+20)
		// A claim for a pop whose reply was lost, and that was applied after all.
		late := row.At(time.Now())
		w.store.Plant(row.Row{
			ID: 10_000, Tag: "a", Body: []byte("{}"),
			Due: late.Add(time.Hour + time.Minute), Expected: late, TTR: time.Hour, MaxAttempts: 20,
			Status: row.Executing, Version: 1, Attempt: 1,
			Executor: row.Executor{Process: e.process.ID, Claim: -999999},
		})
		time.Sleep(12 * time.Second)
		if r := w.row(10_000); r.Status != row.Pending {
			w.Errorf("the orphan is still %v after two scans, for as long as its lease lasts", r.Status)
		}
	})
}

// misnumbered has rows with ids that no process can name, until they are given others.
type misnumbered struct {
	store.Store
	rows atomic.Int64
}

func (m *misnumbered) Renumber(
	_ context.Context,
	_ int64,
	_ func() int64,
	limit int,
) (moved int, mend string, err error) {
	moved = min(limit, int(m.rows.Load()))
	m.rows.Add(-int64(moved))
	return moved, "MEND", nil
}

func TestRowsThatHadToBeNumberedAreWarnedOfForMinutes(t *testing.T) {
	inBubble(t, func(w *world) {
		db := &misnumbered{Store: w.store}
		e := w.engine(db, nil)
		db.rows.Store(4*passPage + 1)
		time.Sleep(6 * time.Second)
		if n := db.rows.Load(); n > 0 {
			w.Errorf("%d rows still wait for an id after one pass", n)
		}
		time.Sleep(5*time.Minute - 6*time.Second)
		if got := e.Warning(); !strings.HasSuffix(got, ": MEND") {
			w.Errorf("it warns %q", got)
		}
		time.Sleep(10 * time.Second)
		if got := e.Warning(); got != "" {
			w.Errorf("it still warns %q", got)
		}
	})
}

// Between what the scan of a start finds and what the first look-ahead or peek does there must be no gap: what falls
// into it waits for the next turn of the scan.
func TestStartCatchesUpAtOnce(t *testing.T) {
	type start struct {
		died time.Duration // before the start; a moment ago it still counts as alive
		slow time.Duration // first look at the nodes
	}
	inBubbles(t, map[string]start{
		"ANodeDiedAMomentAgo": {died: 100 * time.Millisecond},
		"ANodeDiedLongAgo":    {died: time.Minute},
		"TheFirstLookIsSlow":  {died: time.Minute, slow: 800 * time.Millisecond},
		"BothAtOnce":          {died: 100 * time.Millisecond, slow: 800 * time.Millisecond},
	}, func(w *world, c start) {
		dying := w.engine(w.store, serving{"a": nothing})
		time.Sleep(5 * time.Second)
		w.crash(dying)
		time.Sleep(c.died)
		var ids []int64
		begin := time.Now()
		for i := range int64(300) {
			ids = append(ids, w.plain(1000+i, "a", row.At(begin.Add(time.Duration(i-299)*10*time.Millisecond))))
		}
		w.engine(slow(w.store, "Nodes", c.slow), serving{"a": nothing})
		time.Sleep(15 * time.Second)
		for _, id := range ids {
			if after := w.ran(id, 1)[0].at.Sub(begin); after > time.Second {
				w.Errorf("what was %v overdue started %v after the start", begin.Sub(w.row(id).Expected.Std()), after)
			}
		}
	})
}

// Rows that became overdue while no process could look must not wait for the next turn of the scan.
func TestOutageIsCaughtUpAsSoonAsItEnds(t *testing.T) {
	inBubble(t, func(w *world) {
		var away atomic.Bool
		w.engine(at(w.store, "Due", func(_ context.Context, do func() error) error {
			if away.Load() {
				return classError(row.ClassNotApplied, "away")
			}
			return do()
		}), serving{"a": nothing})
		for round := range int64(5) {
			time.Sleep(7 * time.Second)
			away.Store(true)
			time.Sleep(time.Second)
			var ids []int64
			for i := range int64(30) {
				ids = append(ids, w.plain(1000*(round+1)+i, "a", row.At(time.Now())))
				time.Sleep(100 * time.Millisecond)
			}
			away.Store(false)
			back := time.Now()
			time.Sleep(10 * time.Second)
			for _, id := range ids {
				if after := w.ran(id, 1)[0].at.Sub(back); after > 2*time.Second {
					w.Errorf("task %d started %v after the end of the outage", id, after)
				}
			}
		}
	})
}

// More falls due at once than memory keeps once it is overdue. Forgotten rows are read again while the rest runs.
func TestBurstIsRunWithoutAPause(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 8000
		ids := w.backlog(tasks, "a", row.At(time.Now().Add(3*time.Second)))
		w.engine(w.store, serving{"a": untilEnd(2*time.Millisecond, nil)}, func(c *Config) { c.Concurrency = 4 })
		time.Sleep(30 * time.Second)
		var starts []time.Time
		for _, id := range ids {
			starts = append(starts, w.ran(id, 1)[0].at)
		}
		slices.SortFunc(starts, time.Time.Compare)
		for i := range starts[1:] {
			if pause := starts[i+1].Sub(starts[i]); pause > 700*time.Millisecond {
				w.Errorf("nothing started for %v after %d tasks", pause, i+1)
			}
		}
	})
}
