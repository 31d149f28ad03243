package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
)

func TestAChunkIsBoundedByItsBytes(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
			bytes := 0
			for _, r := range rows {
				bytes += len(r.Body)
			}
			if bytes > save.MaxBytes {
				w.Errorf("a statement carries %d bytes", bytes)
			}
			return nil
		}}, nil)
		tasks := make([]delaytask.Save, 10)
		for i := range tasks {
			tasks[i] = w.task("a", time.Hour, delaytask.WithPriority(i))
			tasks[i].Body = make([]byte, 1_000_000)
		}
		for i, r := range w.saveAll(w.Context(), e, tasks) {
			if r.Err != nil || r.Chunk != i/4 || w.row(r.ID).Priority != i {
				w.Errorf("task %d: %+v, want four tasks in a chunk", i, r)
			}
		}
	})
}

// keyed makes tasks with keys of their own.
func (w *world) keyed(n int) []delaytask.Save {
	tasks := make([]delaytask.Save, n)
	for i := range tasks {
		tasks[i] = w.task("a", time.Hour, delaytask.WithKey(fmt.Sprint("k", i)))
	}
	return tasks
}

// saveAll saves tasks, each valid by itself.
func (w *world) saveAll(ctx context.Context, e *Engine, tasks []delaytask.Save) []delaytask.SaveResult {
	w.Helper()
	saved, err := e.SaveAll(ctx, tasks)
	if err != nil || len(saved) != len(tasks) {
		w.Fatalf("%d results, %v", len(saved), err)
	}
	return saved
}

// stored counts the rows that the table holds.
func (w *world) stored() int { return len(w.store.All()) }

func TestARefusedTaskTakesItsChunkAlong(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		other := w.save(e, "a", time.Hour, delaytask.WithID(1<<40))
		held := w.save(e, "a", time.Hour, delaytask.WithKey("k703"))
		tasks := w.keyed(1200)
		tasks[700] = w.task("b", time.Hour, delaytask.WithID(other))
		saved := w.saveAll(w.Context(), e, tasks)
		for i, r := range saved {
			if r.Chunk != i/save.MaxRows {
				w.Errorf("task %d is of chunk %d", i, r.Chunk)
			}
			switch chunk, _ := errors.AsType[*delaytask.ChunkError](r.Err); {
			case i == 700:
				if !errors.Is(r.Err, delaytask.ErrConflict) {
					w.Errorf("the refused one: %+v", r)
				}
			case i == 703:
				if r.ID != held || !errors.Is(r.Err, delaytask.ErrDuplicate) {
					w.Errorf("the duplicate: %+v", r)
				}
			case i/save.MaxRows == 1:
				if chunk == nil || chunk.Index != 700 || !errors.Is(r.Err, delaytask.ErrChunkRefused) ||
					errors.Is(r.Err, delaytask.ErrConflict) || r.ID != 0 {
					w.Fatalf("task %d of the refused chunk: %+v", i, r)
				}
			case r.Err != nil || w.row(r.ID).Key != tasks[i].Key:
				w.Fatalf("task %d: %+v", i, r)
			}
		}
		if n := w.stored(); n != 2+700 {
			w.Errorf("%d rows are stored", n)
		}
	})
}

func TestTheTaskThatTheDatabaseRefusesIsNamedAndNothingOfItsChunkIsStored(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.refusing(), nil)
		for _, bad := range []int{0, 1, 311, 499} {
			tasks := make([]delaytask.Save, save.MaxRows+1)
			for i := range tasks {
				tasks[i] = w.task("a", time.Hour)
			}
			tasks[bad] = w.task("a", time.Hour, delaytask.WithPriority(66))
			before := w.stored()
			saved := w.saveAll(w.Context(), e, tasks)
			chunk, _ := errors.AsType[*delaytask.ChunkError](saved[(bad+1)%save.MaxRows].Err)
			if row.ClassOf(saved[bad].Err) != row.ClassCaller || chunk == nil || chunk.Index != bad ||
				saved[save.MaxRows].Err != nil {
				w.Errorf("task %d: %v, its neighbour %v", bad, saved[bad].Err, saved[(bad+1)%save.MaxRows].Err)
			}
			if n := w.stored() - before; n != 1 {
				w.Errorf("task %d: %d rows are stored, want the other chunk's row", bad, n)
			}
		}
	})
}

func TestTasksThatMeetEachOtherInAChunk(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		own := delaytask.WithID(1 << 40)
		tasks := []delaytask.Save{
			w.task(
				"a",
				time.Hour,
				delaytask.WithKey("k"),
			), w.task("a", time.Hour), w.task("a", time.Hour, delaytask.WithKey("k")),
			w.task("b", time.Hour, own), w.task("b", time.Hour, own),
		}
		saved := w.saveAll(w.Context(), e, tasks)
		if !errors.Is(saved[2].Err, delaytask.ErrDuplicate) || saved[2].ID != saved[0].ID || saved[4].Err != nil ||
			saved[4].ID != saved[3].ID || w.stored() != 3 {
			w.Errorf("got %+v, %d rows", saved, w.stored())
		}
		again := w.saveAll(w.Context(), e, []delaytask.Save{tasks[0], tasks[2], tasks[3]})
		if again[0].ID != saved[0].ID || again[1].ID != saved[0].ID || again[2].ID != saved[3].ID ||
			again[2].Err != nil ||
			w.stored() != 3 {
			w.Errorf("again: %+v", again)
		}
		tasks = append(tasks, w.task("c", time.Hour, own))
		for i, r := range w.saveAll(w.Context(), e, tasks[1:]) {
			if want := i == len(tasks)-2; errors.Is(r.Err, delaytask.ErrConflict) != want ||
				errors.Is(r.Err, delaytask.ErrChunkRefused) == want {
				w.Errorf("one id for two contents: %d is %+v", i, r)
			}
		}
	})
}

func TestAChunkWithALostReplyIsStoredOnceAndWhole(t *testing.T) {
	noReply := classError(row.ClassUnknown, "no reply")
	inBubbles(t, map[string]func(insert func()) error{
		"Before":  func(func()) error { return classError(row.ClassNotApplied, "no connection") },
		"Never":   func(func()) error { return noReply },
		"Applied": func(insert func()) error { insert(); return noReply },
		"Late":    func(insert func()) error { time.AfterFunc(5*time.Millisecond, insert); return noReply },
	}, func(w *world, meet func(insert func()) error) {
		for fault := 1; fault <= 4; fault++ { // the calls of three chunks, and one of those that follow
			calls := 0
			e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
				if calls++; calls != fault {
					return nil
				}
				return meet(func() { _ = w.store.Insert(context.Background(), nil, rows) })
			}}, nil)
			before := w.stored()
			tasks := make([]delaytask.Save, 1100)
			for i := range tasks {
				tasks[i] = w.task("a", time.Hour, delaytask.WithKey(fmt.Sprint(fault, " ", i)))
			}
			for i, r := range w.saveAll(w.Context(), e, append(tasks, tasks[600])) {
				if i == 1100 && !errors.Is(r.Err, delaytask.ErrDuplicate) ||
					i < 1100 && (r.Err != nil || !w.exists(r.ID)) {
					w.Fatalf("call %d: task %d: %+v", fault, i, r)
				}
			}
			time.Sleep(time.Second)
			if got := w.stored() - before; got != 1100 {
				w.Fatalf("call %d: %d rows, want 1,100", fault, got)
			}
		}
	})
}

func TestCallerThatLeavesAChunkIsToldItsIDs(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowInsert(time.Second)
		e := w.idle(store, nil)
		ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
		defer cancel()
		tasks := w.keyed(save.MaxRows + 10) // the second chunk waits for the first
		saved := w.saveAll(ctx, e, tasks)
		for i, r := range saved {
			unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](r.Err)
			if ok != (i < save.MaxRows) || !errors.Is(r.Err, context.DeadlineExceeded) {
				w.Fatalf("task %d: %v", i, r.Err)
			}
			if ok {
				tasks[i].ID = unknown.ID
			}
		}
		time.Sleep(5 * time.Second)
		if n := w.stored(); n != save.MaxRows {
			w.Errorf("%d rows, want the first chunk", n)
		}
		for i, r := range w.saveAll(w.Context(), e, tasks) {
			if r.Err != nil || i < save.MaxRows && r.ID != tasks[i].ID {
				w.Fatalf("again, task %d: %+v", i, r)
			}
		}
		if n := w.stored(); n != len(tasks) {
			w.Errorf("%d rows", n)
		}
	})
}

// A chunk that is saved again brings a task that is finished by now and another one with its key, which is free.
func TestAKeyOfAChunkIsFreeOnceItsTaskIsFinished(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, nil)
		first := w.save(e, "a", time.Hour, delaytask.WithID(1<<40), delaytask.WithKey("k"))
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: first}, false)
		w.must(err)
		key := delaytask.WithKey("k")
		saved := w.saveAll(w.Context(), e, []delaytask.Save{
			w.task(
				"a",
				time.Hour,
				delaytask.WithID(first),
				key,
			), w.task("a", 2*time.Hour, key), w.task("a", 3*time.Hour, key),
		})
		second, third := saved[1], saved[2]
		if saved[0].Err != nil || second.Err != nil || second.ID == first || third.ID != second.ID ||
			!errors.Is(third.Err, delaytask.ErrDuplicate) {
			w.Errorf("saved %+v", saved)
		}
		if n := w.stored(); n != 2 {
			w.Errorf("%d rows, want 2", n)
		}
	})
}
