package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/store"
)

// insertHook is asked before every insert; its error is the answer.
type insertHook struct {
	store.Store
	hook func(ctx context.Context, rows []row.Row) error
}

func (s insertHook) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
	if err := s.hook(ctx, rows); err != nil {
		return err
	}
	return s.Store.Insert(ctx, tx, rows)
}

// answer is what a save returned.
type answer struct {
	id  int64
	err error
}

// saveLater saves in the background.
func (w *world) saveLater(ctx context.Context, e *Engine, task delaytask.Save) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		id, saved, err := e.Save(ctx, task)
		if saved.Row != nil && saved.Row.ID != id {
			w.Errorf("saved as %d, and told of %+v", id, saved.Row)
		}
		done <- answer{id, err}
	}()
	synctest.Wait()
	return done
}

func (w *world) exists(id int64) bool {
	w.Helper()
	rows, _, err := w.store.Get(w.Context(), nil, []int64{id})
	w.must(err)
	return len(rows) == 1
}

// answered returns the answer of a save that must have one after so long.
func (w *world) answered(done <-chan answer, within time.Duration) answer {
	w.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(within):
		w.Fatalf("a save has no answer after %v", within)
		return answer{}
	}
}

// keyLater saves a task with the key in the background.
func (w *world) keyLater(e *Engine, key string, opts ...delaytask.Option) <-chan answer {
	w.Helper()
	return w.saveLater(w.Context(), e, w.task("a", time.Hour, append(opts, delaytask.WithKey(key))...))
}

// allStored wants that the saves have stored their tasks after so long.
func (w *world) allStored(within time.Duration, saves ...<-chan answer) {
	w.Helper()
	for i, done := range saves {
		if a := w.answered(done, within); a.err != nil || !w.exists(a.id) {
			w.Errorf("save %d: %+v", i, a)
		}
	}
}

// answering is the store, but an insert is answered with the first error that a row of it gets.
func (w *world) answering(answer func(row.Row) error) store.Store {
	return insertHook{w.store, func(_ context.Context, rows []row.Row) error {
		for _, r := range rows {
			if err := answer(r); err != nil {
				return err
			}
		}
		return nil
	}}
}

// refusing is the store, which refuses rows of the priority 66.
func (w *world) refusing() store.Store {
	return w.answering(func(r row.Row) error {
		if r.Priority == 66 {
			return classError(row.ClassCaller, "refused")
		}
		return nil
	})
}

func classError(class row.Class, text string) error {
	return &row.Error{Class: class, Op: "test", Err: errors.New(text)}
}

// slowInsert lets every insert take d, and tells how many rows each one carried.
func (w *world) slowInsert(d time.Duration) (store store.Store, sizes func() []int) {
	var mu sync.Mutex
	var carried []int
	hook := func(_ context.Context, rows []row.Row) error {
		mu.Lock()
		carried = append(carried, len(rows))
		mu.Unlock()
		time.Sleep(d)
		return nil
	}
	return insertHook{w.refusing(), hook}, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return carried
	}
}

// Callers that go on repeating a key do not have the batches of others refused.
func TestTakenKeysAreAnsweredBeforeTheBatchIsSent(t *testing.T) {
	inBubble(t, func(w *world) {
		var refused atomic.Int64
		store := insertHook{w.store, func(ctx context.Context, rows []row.Row) error {
			for _, r := range rows {
				if r.Key == "taken" {
					refused.Add(1)
				}
			}
			lifecycle.Sleep(ctx, 5*time.Millisecond)
			return nil
		}}
		e := w.idle(store, nil)
		holder := w.save(e, "a", time.Hour, delaytask.WithKey("taken"))
		refused.Store(0)
		for i := range 100 {
			bad, good := w.keyLater(e, "taken"), w.keyLater(e, fmt.Sprint("fresh ", i))
			if got := <-bad; got.id != holder || !errors.Is(got.err, delaytask.ErrDuplicate) {
				w.Fatalf("a taken key: %+v", got)
			}
			w.allStored(time.Second, good)
		}
		if n := refused.Load(); n > 2 {
			w.Errorf("the taken key was sent %d times in 100 saves", n)
		}
		// A save that is repeated with its own id met no other task.
		again := []delaytask.Option{delaytask.WithID(holder + 1<<22), delaytask.WithKey("own")}
		if first, second := w.save(e, "a", time.Hour, again...), w.save(e, "a", time.Hour, again...); first != second {
			w.Errorf("the same save gave the tasks %d and %d", first, second)
		}
		// When its task is finished the key is free at once.
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: holder}, false)
		w.must(err)
		w.save(e, "a", time.Hour, delaytask.WithKey("taken"))
	})
}

func TestKeyOfAllTagsIsMetByWhateverTag(t *testing.T) {
	global := func(s *delaytask.Save) error {
		s.Key = row.GlobalKey + "7"
		return nil
	}
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		id := w.save(e, "a", time.Hour, global)
		for range 2 { // the second time taken keys are looked up first
			got, _, err := e.Save(w.Context(), w.task("b", time.Hour, global))
			if want := (&delaytask.DuplicateError{ID: id}); err == nil || err.Error() != want.Error() || got != id {
				w.Errorf("saved as %d, %v, want %v", got, err, want)
			}
		}
		_, err := e.Cancel(w.Context(), nil, control.Ref{Tag: "b", Key: row.GlobalKey + "7"}, false)
		w.must(err)
		saved, err := e.SaveAll(
			w.Context(),
			[]delaytask.Save{w.task("b", time.Hour, global), w.task("c", time.Hour, global)},
		)
		if err != nil || saved[0].Err != nil || saved[1].Err == nil ||
			saved[1].Err.Error() != (&delaytask.DuplicateError{ID: saved[0].ID}).Error() {
			w.Errorf("saved together: %v, %v", saved, err)
		}
	})
}

func TestSavesThatArriveDuringAStatementShareTheNextOne(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		var answers []<-chan answer
		for range 10 {
			answers = append(answers, w.saveLater(w.Context(), e, w.task("a", time.Hour)))
		}
		w.allStored(time.Minute, answers...)
		if !slices.Equal(sizes(), []int{1, 1, 8}) { // two statements may be in flight
			w.Errorf("statements carried %v rows, want 1, 1 and 8", sizes())
		}
	})
}

func TestCoalescedSaveAnswersEachCallerForItself(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		taken := w.save(e, "a", time.Hour, delaytask.WithKey("taken"))

		leaving, leave := context.WithCancel(w.Context())
		first, good, duplicate := w.keyLater(e, "first"), w.keyLater(e, "good"), w.keyLater(e, "taken")
		gone := w.saveLater(leaving, e, w.task("a", time.Hour, delaytask.WithKey("gone")))
		refused := w.keyLater(e, "refused", delaytask.WithPriority(66))
		repeated, other := w.keyLater(e, "good"), w.keyLater(e, "other")
		leave()

		if a := <-gone; !errors.Is(a.err, context.Canceled) || errors.Is(a.err, delaytask.ErrOutcomeUnknown) {
			w.Errorf("the caller who left before the statement got %v", a.err)
		}
		for name, c := range map[string]<-chan answer{"first": first, "good": good, "other": other} {
			if a := <-c; a.err != nil || w.row(a.id).Key != name {
				w.Errorf("%s: %v", name, a.err)
			}
		}
		if a := <-duplicate; a.id != taken || !errors.Is(a.err, delaytask.ErrDuplicate) {
			w.Errorf("duplicate: %v, want the id %d", a, taken)
		}
		if a := <-refused; row.ClassOf(a.err) != row.ClassCaller || a.id != 0 {
			w.Errorf("refused: %v", a)
		}
		if a := <-repeated; !errors.Is(a.err, delaytask.ErrDuplicate) || a.id == 0 || w.row(a.id).Key != "good" {
			w.Errorf("repeated: %v", a)
		}
		if n := w.stored(); n != 4 {
			w.Errorf("%d rows are stored, want taken, first, good and other", n)
		}
		if slices.Max(sizes()) < 4 {
			w.Errorf("the saves did not travel together: %v", sizes())
		}
	})
}

// Who saves again under that ID, and leaves before anything is sent, knows no more than before.
func TestCallerThatLeavesDuringTheStatementIsToldTheID(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
			w.Cleanup(cancel)
			return ctx
		}
		_, _, err := e.Save(short(), w.task("a", time.Hour))
		unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err)
		if !ok || unknown.ID == 0 || !errors.Is(err, delaytask.ErrOutcomeUnknown) {
			w.Fatalf("got %v, want an OutcomeUnknownError", err)
		}
		w.saveLater(w.Context(), e, w.task("a", time.Hour, delaytask.WithID(e.ids.Next()))) // holds up the lane
		again := w.task("a", time.Hour, delaytask.WithID(unknown.ID))
		over := short()
		time.Sleep(20 * time.Millisecond)
		contexts := map[string]context.Context{"while it waits for its turn": short(), "before it asks": over}
		for name, ctx := range contexts {
			_, _, err = e.Save(ctx, again)
			still, ok := errors.AsType[*delaytask.OutcomeUnknownError](err)
			if !ok || still.ID != unknown.ID || !errors.Is(err, context.Cause(ctx)) {
				w.Errorf("%s: got %v, want the outcome unknown", name, err)
			}
			results, err := e.SaveAll(ctx, []delaytask.Save{again})
			if results != nil {
				err = results[0].Err
			}
			if !errors.Is(err, delaytask.ErrOutcomeUnknown) {
				w.Errorf("%s, in a batch: got %v, want the outcome unknown", name, err)
			}
		}
		if id := w.save(e, "a", time.Hour, delaytask.WithID(unknown.ID)); id != unknown.ID || w.stored() != 2 {
			w.Errorf("saved as %d, want %d; %d rows are stored, want 2", id, unknown.ID, w.stored())
		}
	})
}

// A save that meets its task, stored by another try meanwhile with a later promise, keeps to the promise that is
// stored.
func TestSaveThatMeetsItsTaskKeepsTheStoredTime(t *testing.T) {
	inBubble(t, func(w *world) {
		tags := serving{"a": nothing}
		store, _ := w.slowInsert(2 * time.Second)
		slow, quick := w.engine(store, tags), w.idle(w.store, nil)
		time.Sleep(2 * time.Second)
		id := slow.ids.Next()
		first := w.saveLater(w.Context(), slow, w.task("a", 2050*time.Millisecond, delaytask.WithID(id)))
		time.Sleep(time.Second)
		if again := w.save(quick, "a", 2050*time.Millisecond, delaytask.WithID(id)); again != id {
			w.Fatalf("saved as %d, want %d", again, id)
		}
		if a := <-first; a.err != nil || a.id != id {
			w.Errorf("the first try: %v", a)
		}
		time.Sleep(10 * time.Second)
		w.completed(id, 2*time.Millisecond) // and not early, as the journal notices
	})
}

func TestSaveWithALostReplyThatIsRefusedLaterIsOfUnknownOutcome(t *testing.T) {
	inBubble(t, func(w *world) {
		calls := 0
		e := w.idle(insertHook{w.store, func(context.Context, []row.Row) error {
			if calls++; calls == 1 {
				return classError(row.ClassUnknown, "the reply is lost")
			}
			return classError(row.ClassOperator, "the disk is full")
		}}, nil)
		_, _, err := e.Save(w.Context(), w.task("a", time.Hour))
		if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); !ok || unknown.ID == 0 {
			w.Errorf("got %v, want the id and that nobody knows", err)
		}
	})
}

// The lost statement may still be applied, as soon as the other task has finished.
func TestTakenKeyAfterALostStatementIsOfUnknownOutcome(t *testing.T) {
	inBubble(t, func(w *world) {
		lost := false
		e := w.idle(insertHook{w.store, func(context.Context, []row.Row) error {
			if lost = !lost; lost {
				return classError(row.ClassUnknown, "the statement is lost")
			}
			return nil
		}}, nil)
		w.save(w.idle(w.store, nil), "a", time.Hour, delaytask.WithKey("k"))
		taken := w.task("a", time.Hour, delaytask.WithKey("k"))
		_, _, err := e.Save(w.Context(), taken)
		unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err)
		if !ok || errors.Is(err, delaytask.ErrDuplicate) {
			w.Fatalf("got %v, want an OutcomeUnknownError that is no duplicate", err)
		}
		again := w.idle(w.store, nil)
		_, _, err = again.Save(w.Context(),
			w.task("a", time.Hour, delaytask.WithKey("k"), delaytask.WithID(unknown.ID)))
		if !errors.Is(err, delaytask.ErrDuplicate) {
			w.Errorf("saved again with the id: %v, want a duplicate", err)
		}
		// A row of the chunk is in the table, and the lost statement has it too.
		results, err := e.SaveAll(w.Context(), []delaytask.Save{taken, w.task("a", time.Hour)})
		if err != nil || !errors.Is(results[0].Err, delaytask.ErrDuplicate) || results[1].Err != nil {
			w.Errorf("a chunk: %v, %+v, want a duplicate and a new task", err, results)
		}
	})
}

func TestSavesGoOnAtOnceWhenTheDatabaseIsBack(t *testing.T) {
	inBubble(t, func(w *world) {
		var away atomic.Bool
		var calls atomic.Int64
		e := w.engine(insertHook{w.store, func(context.Context, []row.Row) error {
			if !away.Load() {
				return nil
			}
			calls.Add(1)
			return classError(row.ClassNotApplied, "connection refused")
		}}, nil)
		for _, opts := range [][]delaytask.Option{nil, {delaytask.WithKey("k")}} {
			away.Store(true)
			calls.Store(0)
			waits := w.saveLater(w.Context(), e, w.task("a", time.Hour, opts...))
			time.Sleep(time.Minute)
			if n := calls.Load(); n > 400 {
				w.Errorf("tried %d times in a minute", n)
			}
			away.Store(false)
			w.allStored(500*time.Millisecond, waits)
		}
	})
}

func TestSaveTwiceWithOneIDAtTheSameMoment(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		id := e.ids.Next()
		first := w.keyLater(e, "occupies the lane")
		a := w.saveLater(w.Context(), e, w.task("a", time.Hour, delaytask.WithID(id)))
		b := w.saveLater(w.Context(), e, w.task("a", time.Hour, delaytask.WithID(id)))
		c := w.saveLater(w.Context(), e, w.task("b", time.Hour, delaytask.WithID(id)))
		w.allStored(20*time.Second, first, a, b)
		if got := w.answered(c, 20*time.Second); !errors.Is(got.err, delaytask.ErrConflict) {
			w.Errorf("another task under the id: %v, want ErrConflict", got.err)
		}
	})
}

// Who learns late that an outcome is unknown saves again when the moment that he asked for has passed.
func TestSaveAgainWhenTheMomentHasPassed(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(txStore{w.store}, nil)
		soon, passed := time.Now().Add(3*time.Second), time.Now().Add(-time.Second)
		for _, moment := range []time.Time{soon, passed} {
			again := w.task("a", 0, delaytask.WithID(e.ids.Next()), delaytask.WithTime(moment))
			id := again.ID
			if _, _, err := e.Save(w.Context(), again); err != nil {
				w.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if got, _, err := e.Save(w.Context(), again); got != id || err != nil {
				w.Errorf("saved again: %d, %v", got, err)
			}
			if got := w.saveAll(w.Context(), e, []delaytask.Save{again})[0]; got.ID != id || got.Err != nil {
				w.Errorf("saved again among many: %d, %v", got.ID, got.Err)
			}
			if got, err := e.SaveTx(w.Context(), &memTx{}, again); got != id || err != nil {
				w.Errorf("saved again in a transaction: %d, %v", got, err)
			}
			times := map[string]time.Time{"later": moment.Add(time.Hour), "before": moment.Add(-time.Millisecond)}
			for name, at := range times {
				other := again
				other.At = at
				_, _, err := e.Save(w.Context(), other)
				if same := moment.Equal(passed) && name == "before"; errors.Is(err, delaytask.ErrConflict) == same {
					w.Errorf("the same task for a moment that is %s: %v", name, err)
				}
			}
		}
	})
}

func TestKeyOfAnUndecodableTaskStopsNoOtherSave(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(100 * time.Millisecond)
		e := w.idle(store, nil)
		id := w.save(e, "a", time.Hour, delaytask.WithKey("k"))
		garbled := w.row(id)
		garbled.Headers = []byte("{")
		w.store.Plant(garbled)

		first, neighbour := w.keyLater(e, "first"), w.keyLater(e, "neighbour")
		met, later := w.keyLater(e, "k"), w.keyLater(e, "later")
		w.allStored(5*time.Second, first, neighbour, later)
		if a := w.answered(met, 20*time.Second); row.ClassOf(a.err) != row.ClassDuplicate {
			w.Errorf("got %v, want the refusal", a.err)
		}
	})
}

func TestQueueOfSavesIsBounded(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		body := strings.Repeat("x", 1<<20)
		big, err := request.NewSave("a", body, time.Hour, request.Limits{})
		w.must(err)
		overloaded := 0
		var answers []<-chan answer
		for range 80 {
			answers = append(answers, w.saveLater(w.Context(), e, big))
		}
		for _, done := range answers {
			if a := <-done; errors.Is(a.err, delaytask.ErrOverloaded) {
				overloaded++
			} else if a.err != nil {
				w.Error(a.err)
			}
		}
		if overloaded == 0 || overloaded > 20 {
			w.Errorf("%d of %d saves are refused", overloaded, len(answers))
		}
	})
}

func TestHeapCapDropsTheLatestAndStillRunsAll(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing}, func(c *Config) { c.HeapCap = 40 })
		time.Sleep(time.Second)
		var ids []int64
		for i := range 200 {
			ids = append(ids, w.save(e, "a", 10*time.Second+time.Duration(200-i)*50*time.Millisecond))
		}
		if n := e.runqueue.Counts().Timers; n > 45 {
			w.Errorf("%d timers in memory, the cap is 40", n)
		}
		time.Sleep(30 * time.Second)
		w.allCompleted(ids, 3*time.Millisecond)
	})
}

func TestSaveBeyondTheHorizonIsArmedByTheLookAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing}, func(c *Config) { c.Horizon = time.Minute })
		time.Sleep(2 * time.Second)
		within := w.save(e, "a", 59*time.Second)
		if n := e.runqueue.Counts().Timers; n != 1 {
			w.Errorf("%d timers after a save within the horizon, want 1", n)
		}
		beyond := w.save(e, "a", 61*time.Second)
		if n := e.runqueue.Counts().Timers; n != 1 {
			w.Errorf("%d timers after a save beyond the horizon, want 1", n)
		}
		time.Sleep(2 * time.Minute)
		w.completed(within, 2*time.Millisecond)
		w.completed(beyond, 2*time.Millisecond)
	})
}

func TestDelaysAreRoundedUpToMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, 1500 * time.Microsecond: 2 * time.Millisecond,
		math.MaxInt64: time.Duration(math.MaxInt64).Truncate(time.Millisecond),
	} {
		if got := save.RoundUp(d); got != want {
			t.Errorf("%v is rounded to %v, want %v", d, got, want)
		}
	}
}
