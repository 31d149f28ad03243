package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// stream saves tasks that are due at once, as many as keep so many percent of the slots busy with a while each, until
// the test ends.
func (w *world) stream(concurrency int, each time.Duration, percent int) *Engine {
	w.Helper()
	e := w.engine(w.store, serving{"a": untilEnd(each, nil)}, func(c *Config) { c.Concurrency = concurrency })
	w.lossy[e] = true // what waits at the end is left
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	go func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for ctx.Err() == nil {
			w.save(e, "a", 0)
			time.Sleep(time.Duration(rng.ExpFloat64() * float64(each) * 100 / float64(concurrency*percent)))
		}
	}()
	time.Sleep(20 * time.Second)
	return e
}

// Slots come free one by one there, and a younger task waits for each.
func TestABacklogHasItsTurnBesideAStreamOfYoungerTasks(t *testing.T) {
	type load struct{ concurrency, percent int }
	inBubblesOf(t, []load{{8, 85}, {8, 105}, {64, 85}, {64, 105}}, func(w *world, c load) {
		w.stream(c.concurrency, time.Second, c.percent)
		ids := w.backlog(10, "a", row.At(time.Now().Add(-10*time.Second)))
		time.Sleep(20 * time.Second)
		w.standing(row.Completed, 1, 0, ids...)
	})
}

func TestTaskOnProbationRunsBesideAStreamOfYoungerTasks(t *testing.T) {
	inBubble(t, func(w *world) {
		w.stream(8, time.Second, 250)
		for crashes := runqueue.ProbationAt; crashes < 5; crashes++ {
			w.plantCrashed(int64(crashes), "a", crashes, time.Minute)
		}
		time.Sleep(time.Minute)
		for crashes := runqueue.ProbationAt; crashes < 5; crashes++ {
			w.standing(row.Completed, 1, crashes, int64(crashes))
		}
	})
}

// unhindered checks that results and rescues are written in time.
func (w *world) unhindered(e *Engine) {
	w.Helper()
	const crashed = 77
	now := row.At(time.Now())
	w.store.Plant(row.Row{
		ID: crashed, Tag: "b", Status: row.Executing, Version: 1, Attempt: 1, MaxAttempts: 3,
		Executor: another,
		Due:      now.Add(time.Second), Expected: now, TTR: time.Second, Body: []byte("{}"),
	})
	for range 6 {
		id := w.save(e, "b", time.Second)
		time.Sleep(1500 * time.Millisecond)
		w.standing(row.Completed, 1, 0, id)
	}
	if w.row(crashed).CrashCount != 1 {
		w.Error("a lease is not ended 8 s after it was over")
	}
}

func TestLeasesOfPoppedRowsThatAreLockedHoldUpNoResult(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(crowded(w.store, "Update", 2), serving{"b": nothing})
		ids := w.saveMany(e, "p", 40, delaytask.WithTTR(3*time.Second))
		time.Sleep(100 * time.Millisecond)
		w.takeAll(e, "p", 40)
		unlock := w.store.Lock(ids...)
		time.Sleep(6 * time.Second)
		w.unhindered(e)
		unlock()
		time.Sleep(10 * time.Second)
		w.standing(row.Pending, 1, 0, ids...)
	})
}

func TestChangesOfRowsThatAreLockedHoldUpNoResult(t *testing.T) {
	inBubble(t, func(w *world) {
		const n = 20
		e := w.engine(crowded(w.store, "Update", 2), serving{"b": nothing})
		ids := w.many(e, n, "p", time.Hour)
		unlock := w.store.Lock(ids...)
		var cancelled atomic.Int64
		for _, id := range ids {
			go func() {
				if _, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false); err == nil {
					cancelled.Add(1)
				}
			}()
		}
		time.Sleep(n * time.Second / 2) // each waits once, two at a time
		w.unhindered(e)
		unlock()
		time.Sleep(5 * time.Second)
		if cancelled.Load() != n {
			w.Errorf("%d of %d are cancelled after the lock", cancelled.Load(), n)
		}
	})
}

// The task is given back through another node as its lease ends, and popped here again while the alarm looks what
// became of it.
func TestAlarmOfAnEarlierPopLeavesTheNextOneAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		var late atomic.Bool
		e, other := w.engine(at(w.store, "States", func(_ context.Context, do func() error) error {
			err := do()
			if late.Load() {
				time.Sleep(2 * time.Second)
			}
			return err
		}), nil), w.engine(w.store, nil)
		id := w.save(e, "p", 0)
		time.Sleep(100 * time.Millisecond)
		pop := func(ttr time.Duration) *delaytask.Task {
			got, err := e.Pop(
				w.Context(),
				lease.PopRequest{Tags: []string{"p"}, Max: 1, TTR: ttr, Waits: true, Wait: 10 * time.Second},
			)
			if err != nil || len(got) != 1 {
				w.Errorf("popped %d tasks: %v", len(got), err)
				return &delaytask.Task{}
			}
			return got[0]
		}
		first := pop(3 * time.Second)
		popped := time.Now()
		again := make(chan *delaytask.Task)
		time.AfterFunc(2900*time.Millisecond, func() { again <- pop(time.Minute) })
		time.Sleep(time.Until(popped.Add(2950 * time.Millisecond)))
		late.Store(true)
		w.must(other.Release(w.Context(), first.ID, first.Version))
		second := <-again
		time.Sleep(10 * time.Second)
		late.Store(false)
		if r := w.row(id); r.Status != row.Executing || r.Version != second.Version {
			w.Errorf("the row was taken from its holder: %+v", r)
		}
		w.must(e.Finish(w.Context(), second.ID, second.Version))
	})
}

// A tag that gets half as much again as it can run, all the time. Forgotten rows must have their turn all the same.
func TestOverdueRowsHaveTheirTurnWhileTheBacklogIsFull(t *testing.T) {
	inBubble(t, func(w *world) {
		w.stream(4, 20*time.Millisecond, 150)
		time.Sleep(5 * time.Second)
		ids := w.backlog(10, "a", row.At(time.Now().Add(-time.Hour)))
		time.Sleep(60 * time.Second)
		w.standing(row.Completed, 1, 0, ids...) // beside 12000 younger ones
	})
}

// The database refuses to complete one row, as a trigger of the users' may.
func TestResultThatIsRefusedForGoodHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad atomic.Int64
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if slices.ContainsFunc(changes, func(c row.Change) bool { return c.ID == bad.Load() }) {
				return 0, classError(row.ClassCaller, "refused by a trigger")
			}
			return w.store.Update(ctx, nil, changes)
		}}, serving{"a": nothing, "b": nothing})
		time.Sleep(time.Second)
		bad.Store(w.save(e, "a", 100*time.Millisecond))
		time.Sleep(5 * time.Second)
		for range 3 {
			id := w.save(e, "b", 100*time.Millisecond)
			time.Sleep(10 * time.Second)
			w.completed(id, time.Second)
		}
		bad.Store(0)
		time.Sleep(20 * time.Second)
	})
}

// Holders of popped tasks touch rows that a transaction holds; a processor elsewhere in the process keeps its lease.
func TestTouchesOfLockedRowsCostNoOtherTaskItsLease(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(crowded(w.store, "Renew", 1), serving{"b": untilEnd(20*time.Second, nil)})
		ids := w.saveMany(e, "p", 20, delaytask.WithTTR(time.Minute))
		time.Sleep(100 * time.Millisecond)
		held := w.takeAll(e, "p", 20)
		kept := w.save(e, "b", 0, delaytask.WithTTR(6*time.Second))
		time.Sleep(time.Second)
		unlock := w.store.Lock(ids...)
		var stop atomic.Bool
		for _, ref := range held {
			go func() {
				for !stop.Load() {
					if err := e.Touch(w.Context(), ref.ID, ref.Version, time.Minute); errors.Is(
						err,
						delaytask.ErrLeaseLost,
					) {
						w.Error(err)
					}
					time.Sleep(time.Second)
				}
			}()
		}
		time.Sleep(20 * time.Second)
		stop.Store(true)
		unlock()
		time.Sleep(time.Minute)
		w.completed(kept, time.Second)
	})
}

// Another node that asks whether rows are locked holds them for a moment.
func TestBulkChangeMeetsAMomentaryLock(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		ids := w.many(e, 10, "p", time.Hour)
		e.Locks.Note()
		unlock := w.store.Lock(ids[3:5]...)
		time.AfterFunc(20*time.Millisecond, unlock)
		n, _, err := e.CancelWhere(w.Context(), control.Bulk{Query: listing.Query{Tag: "p"}})
		if n != 10 || err != nil {
			w.Errorf("%d of 10 tasks are cancelled: %v", n, err)
		}
	})
}

func TestLockedRowIsAskedForLessAndLess(t *testing.T) {
	inBubbles(
		t,
		map[string]time.Duration{"ToClaimIt": 0, "ForItsResult": 4 * time.Second},
		func(w *world, locked time.Duration) {
			var asked atomic.Int64
			work := make(chan struct{})
			e := w.engine(at(w.store, "Locked", func(_ context.Context, do func() error) error {
				asked.Add(1)
				return do()
			}), serving{"a": func(context.Context, *delaytask.Task) error { <-work; return nil }})
			time.Sleep(time.Second)
			id := w.save(e, "a", 3*time.Second, delaytask.WithTTR(time.Hour)) // so that no renewal asks as well
			time.Sleep(locked)
			unlock := w.store.Lock(id)
			close(work)
			time.Sleep(30 * time.Second)
			if n := asked.Load(); n < 5 || n > 20 {
				w.Errorf("the locked row was asked for %d times in 30 s, want it at growing intervals", n)
			}
			unlock()
			time.Sleep(10 * time.Second)
			w.completed(id, time.Minute)
		},
	)
}

func TestPopMayWaitForLongerThanItsTagIsRemembered(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Minute)
		defer cancel()
		time.AfterFunc(time.Minute, func() { w.save(e, "a", 0) })
		got, err := e.Pop(ctx, lease.PopRequest{Tags: []string{"a"}, Max: 1})
		if err != nil || len(got) != 1 {
			w.Errorf("popped %v, %v", got, err)
		}
	})
}

func TestRowWithoutADueTimeIsNotPoppedBeforeItIsDue(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		r := row.Row{
			ID: e.ids.Next(), Tag: "a", TTR: 15 * time.Second,
			Expected: e.Now().Add(time.Hour), Created: e.Now(), Updated: e.Now(),
		}
		w.must(w.store.Insert(w.Context(), nil, []row.Row{r}))
		got, err := e.Pop(w.Context(), lease.PopRequest{
			Tags: []string{"a"}, Max: 1, Waits: true, Wait: 5 * time.Second,
		})
		if err != nil || len(got) != 0 {
			w.Errorf("popped %v, %v: it is due in an hour", got, err)
		}
	})
}

func TestPoppedTaskThatWasCancelledIsLost(t *testing.T) {
	inBubble(t, func(w *world) {
		e, other := w.engine(w.store, nil), w.engine(w.store, nil)
		id := w.save(e, "a", 0, delaytask.WithTTR(time.Hour))
		task := w.take(e, "a")
		_, err := other.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
		w.must(err)
		began := time.Now()
		if err := e.Finish(w.Context(), id, task.Version); !errors.Is(err, delaytask.ErrLeaseLost) {
			w.Errorf("finished a cancelled task: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			w.Errorf("it took %v to say so", took)
		}
	})
}
