package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// onConflict saves a task with the key, and returns what the save returns.
func (w *world) onConflict(
	e *Engine, mode delaytask.ConflictMode, delay time.Duration, body string, opts ...delaytask.Option,
) (int64, control.Saved, error) {
	w.Helper()
	opts = append(opts, delaytask.WithKey("k"), delaytask.WithOnConflict(mode))
	task, err := request.NewSave("a", body, delay, request.Limits{}, opts...)
	w.must(err)
	return e.Save(w.Context(), task)
}

// The existing task has failed once, has lost an executor, and is due in an hour.
func TestModeDecidesWhatBecomesOfThePendingTask(t *testing.T) {
	type met struct {
		mode    delaytask.ConflictMode
		delay   time.Duration
		body    string
		changed bool
	}
	inBubblesOf(t, []met{
		{delaytask.KeepExisting, time.Minute, "new", false},
		{delaytask.ReplaceTime, time.Minute, "new", true},
		{delaytask.ReplaceTime, 2 * time.Hour, "new", true},
		{delaytask.ReplaceTimeAndBody, time.Minute, "new", true},
		{delaytask.ReplaceTimeAndBody, time.Minute, "old", true},
		{delaytask.OnlyEarlier, time.Minute, "new", true},
		{delaytask.OnlyEarlier, 2 * time.Hour, "new", false},
		{delaytask.OnlyLater, time.Minute, "new", false},
		{delaytask.OnlyLater, 2 * time.Hour, "new", true},
	}, func(w *world, c met) {
		e := w.idle(w.store, nil)
		due := row.At(time.Now().Add(time.Hour))
		w.store.Plant(row.Row{
			ID: 7, Tag: "a", Key: "k", Body: []byte("old"), Version: 3, Attempt: 1, CrashCount: 2, MaxAttempts: 20,
			TTR: time.Second, Due: due, Expected: due.Add(-2 * time.Hour), Created: due.Add(-3 * time.Hour),
		})
		before := w.row(7)
		id, saved, err := w.onConflict(e, c.mode, c.delay, c.body)
		want := before
		if now, _ := e.Bounds.AtMost(); c.changed {
			want.Version, want.Expected = 4, now.Add(c.delay)
			want.Due, want.Delay = want.Expected, c.delay
		}
		if c.mode == delaytask.ReplaceTimeAndBody && c.body == "new" {
			want.Body, want.Attempt, want.CrashCount = []byte("new"), 0, 0
		}
		after := w.row(7)
		if want.Updated = after.Updated; fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", want) {
			w.Errorf("got  %+v\nwant %+v", after, want)
		}
		if id != 7 || saved.Rescheduled != c.changed || saved.Row != nil ||
			errors.Is(err, delaytask.ErrDuplicate) == c.changed || c.changed && err != nil {
			w.Errorf("saved as %d, %+v, %v", id, saved, err)
		}
	})
}

func TestDebouncedTaskRunsOnceAfterTheLastSave(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		var id int64
		for i := range 50 {
			var err error
			id, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, 2*time.Second, fmt.Sprint(i))
			w.must(err)
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		w.handedOver(id, "49")
	})
}

func TestMaxWaitBoundsHowLongSavesPutATaskOff(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second)
		began := time.Now()
		var runs []int64
		for time.Since(began) < 20*time.Second {
			id, _, err := w.onConflict(e, delaytask.ReplaceTime, time.Second, "", delaytask.WithMaxWait(5*time.Second))
			switch {
			case err == nil && (len(runs) == 0 || runs[len(runs)-1] != id):
				runs = append(runs, id)
			case err != nil && !errors.Is(err, delaytask.ErrNotPending): // while it is claimed, just before it runs
				w.Fatal(err)
			}
			time.Sleep(70 * time.Millisecond)
		}
		if len(runs) < 4 {
			w.Fatalf("%d tasks in 20 s", len(runs))
		}
		for _, id := range runs[:3] {
			w.completed(id, 2*time.Millisecond)
			if after := w.runs.of(id)[0].at.Sub(w.row(id).Created.Std()); after > 5*time.Second+2*time.Millisecond {
				w.Errorf("task %d ran %v after it was saved", id, after)
			}
		}
		// A new task is due by then too, and a task whose next attempt is later is not put off any more, but moved.
		id, _, err := w.onConflict(e, delaytask.ReplaceTime, time.Hour, "", delaytask.WithMaxWait(time.Minute),
			delaytask.WithApp("other"))
		w.must(err)
		if r := w.row(id); r.Delay != time.Minute {
			w.Errorf("a new task is due after %v, want 1m", r.Delay)
		}
		retried := row.At(time.Now().Add(time.Hour))
		w.store.Plant(row.Row{ID: 7, Tag: "b", Key: "k", Due: retried, Expected: retried.Add(-2 * time.Hour),
			Created: retried.Add(-3 * time.Hour), Attempt: 1, MaxAttempts: 20, TTR: time.Second})
		for _, delay := range []time.Duration{2 * time.Hour, time.Minute} {
			task, err := request.NewSave("b", "", delay, request.Limits{}, delaytask.WithKey("k"),
				delaytask.WithOnConflict(delaytask.ReplaceTime), delaytask.WithMaxWait(time.Minute))
			w.must(err)
			_, _, err = e.Save(w.Context(), task)
			w.must(err)
			if r := w.row(7); delay > time.Hour && (r.Due != retried || r.Version != 0) ||
				delay < time.Hour && r.Delay != delay {
				w.Errorf("%v: due at %v, after %v", delay, r.Due, r.Delay)
			}
		}
	})
}

// between calls f once before the first UPDATE, as another process that comes in between.
func (w *world) between(f func(ctx context.Context)) store.Store {
	var once sync.Once
	return updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
		once.Do(func() { f(ctx) })
		return w.store.Update(ctx, nil, changes)
	}}
}

// another is the executor of another process.
var another = row.Executor{Process: 9, Claim: 1}

func TestExistingTaskIsClaimedBeforeItIsRescheduled(t *testing.T) {
	inBubble(t, func(w *world) {
		var existing int64
		e := w.idle(w.between(func(ctx context.Context) {
			_, err := w.store.Claim(ctx, row.Claim{Rows: []row.Ref{{ID: existing}}, Executor: another})
			w.must(err)
		}), nil)
		var err error
		existing, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, 0, "old")
		w.must(err)
		id, saved, err := w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Minute, "new")
		busy, _ := errors.AsType[*delaytask.NotPendingError](err)
		if id != existing || saved.Rescheduled || busy == nil || busy.ID != existing {
			w.Errorf("got %d, %+v, %v", id, saved, err)
		}
		if r := w.row(existing); r.Status != row.Executing || r.Version != 1 || string(r.Body) != "old" {
			w.Errorf("the claimed task was changed: %+v", r)
		}
	})
}

func TestExistingTaskEndsBeforeItIsRescheduled(t *testing.T) {
	inBubble(t, func(w *world) {
		var existing int64
		other := w.idle(w.store, nil)
		e := w.engine(w.between(func(ctx context.Context) {
			_, err := other.Cancel(ctx, nil, control.Ref{ID: existing}, false)
			w.must(err)
		}), serving{"a": nothing})
		time.Sleep(time.Second)
		var err error
		existing, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Hour, "old")
		w.must(err)
		id, saved, err := w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Minute, "new")
		w.must(err)
		if id == existing || saved.Rescheduled || saved.Row == nil {
			w.Errorf("got %d, %+v, want a new task", id, saved)
		}
		time.Sleep(2 * time.Minute)
		w.handedOver(id, "new")
	})
}

// Each round meets a task that ends before it is rescheduled.
func TestKeyThatChangesHandsForEverIsContended(t *testing.T) {
	inBubble(t, func(w *world) {
		other := w.idle(w.store, nil)
		e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			_, err := other.Cancel(ctx, nil, control.Ref{ID: changes[0].ID}, false)
			w.must(err)
			_, _, err = w.onConflict(other, delaytask.ReplaceTime, time.Hour, "")
			w.must(err)
			return 0, nil
		}}, nil)
		_, _, err := w.onConflict(other, delaytask.ReplaceTime, time.Hour, "")
		w.must(err)
		if id, _, err := w.onConflict(e, delaytask.ReplaceTime, time.Minute, ""); id != 0 ||
			!errors.Is(err, delaytask.ErrContended) {
			w.Errorf("got %d, %v", id, err)
		}
	})
}

// The reply to the first UPDATE is lost, and the task is claimed before it can be read back.
func TestRescheduleOfUnknownOutcomeIsReadBack(t *testing.T) {
	inBubblesOf(t, []string{"Applied", "NotApplied", "PerhapsReplaced"}, func(w *world, outcome string) {
		var existing int64
		var once sync.Once
		other := w.idle(w.store, nil)
		e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (n int, err error) {
			lost := false
			once.Do(func() {
				lost = true
				switch outcome {
				case "Applied":
					_, err = w.store.Update(ctx, nil, changes)
				case "PerhapsReplaced":
					_, err = other.Reschedule(ctx, nil, control.Ref{ID: existing}, 0, time.Time{}, []byte("other"))
				}
				w.must(err)
				claimed := row.Ref{ID: existing, Version: w.row(existing).Version}
				_, err = w.store.Claim(ctx, row.Claim{Rows: []row.Ref{claimed}, Executor: another})
				w.must(err)
			})
			if lost {
				return 0, classError(row.ClassUnknown, "the connection is gone")
			}
			return w.store.Update(ctx, nil, changes)
		}}, nil)
		var err error
		existing, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Hour, "old")
		w.must(err)
		id, saved, err := w.onConflict(e, delaytask.ReplaceTimeAndBody, 0, "new")
		unknown, _ := errors.AsType[*delaytask.OutcomeUnknownError](err)
		switch {
		case outcome == "Applied":
			if id != existing || !saved.Rescheduled || err != nil || string(w.row(id).Body) != "new" {
				w.Errorf("got %d, %+v, %v", id, saved, err)
			}
			return
		case !errors.Is(err, delaytask.ErrNotPending):
			w.Fatalf("got %d, %v", id, err)
		case outcome == "NotApplied":
			if id != existing || unknown != nil {
				w.Errorf("got %d, %v", id, err)
			}
			return
		case id != 0 || unknown == nil || unknown.ID == existing:
			w.Fatalf("got %d, %v", id, err)
		}
		// Saved again once the existing task has ended, it is a task of its own, whatever became of the first save.
		_, err = e.Cancel(w.Context(), nil, control.Ref{ID: existing}, false)
		w.must(err)
		for range 2 {
			id, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, 0, "new", delaytask.WithID(unknown.ID))
			if id != unknown.ID || err != nil {
				w.Errorf("saved again as %d, %v", id, err)
			}
		}
	})
}

// The items of a bulk save reschedule their tasks in one statement. Each has the answer of its own when that applies
// in part, or when its reply is lost.
func TestBulkSaveReschedulesTogether(t *testing.T) {
	inBubbles(t, map[string]error{"Replied": nil, "Lost": classError(row.ClassUnknown, "the connection is gone")},
		func(w *world, reply error) {
			const n = 1200
			var once sync.Once
			var claimed row.Ref
			var sent []int
			e := w.idle(updateHook{w.store, func(ctx context.Context, changes []row.Change) (applied int, err error) {
				sent = append(sent, len(changes))
				once.Do(func() {
					_, err := w.store.Claim(ctx, row.Claim{Rows: []row.Ref{claimed}, Executor: another})
					w.must(err)
				})
				if applied, err = w.store.Update(ctx, nil, changes); reply != nil && len(changes) > 1 {
					return 0, reply
				}
				return applied, err
			}}, nil)
			batch := func(mode delaytask.ConflictMode, delay time.Duration) (tasks []delaytask.Save) {
				for i := range n {
					tasks = append(tasks, w.task("a", delay, delaytask.WithKey(fmt.Sprint(i)),
						delaytask.WithOnConflict(mode)))
				}
				return tasks
			}
			before := w.saveAll(w.Context(), e, batch(delaytask.ReplaceTime, time.Hour))
			claimed.ID = before[7].ID
			after := w.saveAll(w.Context(), e, batch(delaytask.ReplaceTime, time.Minute))
			for i := range n {
				r, want := after[i], error(nil)
				if i == 7 {
					want = delaytask.ErrNotPending
				}
				if r.ID != before[i].ID || !errors.Is(r.Err, want) || r.Rescheduled != (want == nil) ||
					w.row(r.ID).Version != 1 {
					w.Errorf("item %d: %+v, %+v", i, r, w.row(r.ID))
				}
			}
			if len(sent) != 3 {
				w.Errorf("UPDATEs of %v tasks, want one for each 500", sent)
			}
		})
}

func TestRescheduleThatIsCutOffSaysThatItsOutcomeIsUnknown(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(updateHook{w.store, func(ctx context.Context, _ []row.Change) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}}, nil)
		w.must(func() error { _, _, err := w.onConflict(e, delaytask.ReplaceTime, time.Hour, ""); return err }())
		task := w.task("a", time.Minute, delaytask.WithKey("k"), delaytask.WithOnConflict(delaytask.ReplaceTime))
		ctx, cancel := context.WithCancel(w.Context())
		done := w.saveLater(ctx, e, task)
		cancel()
		synctest.Wait()
		got := w.answered(done, time.Second)
		unknown, _ := errors.AsType[*delaytask.OutcomeUnknownError](got.err)
		if unknown == nil || unknown.ID == 0 || !errors.Is(got.err, context.Canceled) {
			w.Errorf("got %+v", got)
		}
	})
}

func TestBulkRescheduleThatIsCutOffSaysThatItsOutcomeIsUnknown(t *testing.T) {
	inBubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		e := w.idle(updateHook{w.store, func(_ context.Context, changes []row.Change) (int, error) {
			_, err := w.store.Update(w.Context(), nil, changes)
			w.must(err)
			cancel()
			return 0, classError(row.ClassUnknown, "the caller has left")
		}}, nil)
		var tasks []delaytask.Save
		for i := range 40 {
			tasks = append(tasks, w.task("a", time.Hour, delaytask.WithKey(fmt.Sprint(i)),
				delaytask.WithOnConflict(delaytask.ReplaceTime)))
		}
		w.saveAll(w.Context(), e, tasks)
		time.Sleep(time.Minute)
		for i, r := range w.saveAll(ctx, e, tasks) {
			unknown, _ := errors.AsType[*delaytask.OutcomeUnknownError](r.Err)
			if unknown == nil || unknown.ID == 0 || !errors.Is(r.Err, context.Canceled) {
				w.Errorf("item %d, which is rescheduled: %v", i, r.Err)
			}
		}
	})
}

// The client of a service repeats a save under its id, and another save may have changed its task since.
func TestRepeatedSaveOfATaskThatWasRescheduledSince(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		first, _, err := w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Minute, "old")
		w.must(err)
		_, _, err = w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Hour, "new")
		w.must(err)
		id, saved, err := w.onConflict(e, delaytask.ReplaceTimeAndBody, time.Minute, "old", delaytask.WithID(first))
		if id != first || !saved.Rescheduled || err != nil || string(w.row(first).Body) != "old" {
			w.Errorf("got %d, %+v, %v: %+v", id, saved, err, w.row(first))
		}
		_, _, err = w.onConflict(e, delaytask.KeepExisting, time.Hour, "other", delaytask.WithID(first))
		if !errors.Is(err, delaytask.ErrConflict) {
			w.Errorf("without a mode: %v, want ErrConflict", err)
		}
	})
}

// All at once, each version would refuse all of them but one.
func TestSavesOfOneKeyTakeTurns(t *testing.T) {
	inBubble(t, func(w *world) {
		const saves, each = 50, 10 * time.Millisecond
		store, sizes := w.slowUpdate(each)
		e := w.idle(store, nil)
		_, _, err := w.onConflict(e, delaytask.ReplaceTime, time.Hour, "")
		w.must(err)
		began := time.Now()
		short, cancel := context.WithTimeout(w.Context(), 5*each)
		defer cancel()
		var group sync.WaitGroup
		for i := range saves {
			group.Go(func() {
				ctx := w.Context()
				if i%2 == 0 {
					ctx = short
				}
				task := w.task("a", time.Minute, delaytask.WithKey("k"),
					delaytask.WithOnConflict(delaytask.ReplaceTime))
				if _, _, err := e.Save(ctx, task); err != nil && (ctx != short || !row.Ended(err)) {
					w.Error(err)
				}
			})
		}
		group.Wait()
		if took, sent := time.Since(began), len(sizes()); sent > saves || took > time.Duration(sent+1)*each {
			w.Errorf("%d UPDATEs in %v", sent, took)
		}
	})
}
