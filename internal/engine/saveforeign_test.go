package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// plainInsert is the row that another program's plain INSERT makes of the same task a moment later, under the number
// that r was to have.
func plainInsert(r row.Row) row.Row {
	expected := r.Expected.Add(time.Microsecond)
	return row.Row{
		ID: r.ID, Tag: r.Tag, Key: r.Key, Body: r.Body, Delay: r.Delay, Expected: expected, Due: expected,
		TTR: time.Minute, MaxAttempts: 20,
	}
}

// tomorrow is the row of an INSERT that names the moment, and so has no delay.
func tomorrow(r row.Row) row.Row {
	foreign := plainInsert(r)
	foreign.Delay, foreign.Expected = 0, r.Expected.Add(24*time.Hour)
	foreign.Due = foreign.Expected
	return foreign
}

// sameMoment is the row of an INSERT that names the same moment as the save.
func sameMoment(r row.Row) row.Row {
	foreign := plainInsert(r)
	foreign.Delay, foreign.Expected, foreign.Due = 0, r.Expected, r.Expected
	return foreign
}

// anotherTask is the row of an INSERT that has only its number in common with the save.
func anotherTask(r row.Row) row.Row {
	foreign := plainInsert(r)
	foreign.Tag, foreign.Body = "plain", nil
	return foreign
}

var foreignRows = map[string]struct {
	delay   time.Duration
	at      bool // the moment is asked for, not the delay
	foreign func(row.Row) row.Row
}{
	"SameDelay":   {time.Hour, false, plainInsert},
	"NoDelay":     {0, false, plainInsert},
	"Tomorrow":    {0, false, tomorrow},
	"SameMoment":  {time.Hour, true, sameMoment},
	"AnotherTask": {time.Hour, false, anotherTask},
}

// ways are those to save tasks, and how many rows of them an INSERT brings at least where a plain INSERT comes between.
var ways = map[string]struct {
	tasks, least int
	lost         bool // the first statement, so that the plain INSERT takes the id before the second
	save         func(w *world, e *Engine, tasks []delaytask.Save) []delaytask.SaveResult
}{
	"Alone":               {1, 1, false, saveAtOnce},
	"AfterALostStatement": {1, 1, true, saveAtOnce},
	"AmongOtherCallers":   {5, 2, false, saveAtOnce},
	"AmongMany": {3, 3, false, func(w *world, e *Engine, tasks []delaytask.Save) []delaytask.SaveResult {
		return w.saveAll(w.Context(), e, tasks)
	}},
	"InATransaction": {1, 1, false, func(w *world, e *Engine, tasks []delaytask.Save) []delaytask.SaveResult {
		tx := &memTx{}
		id, err := e.SaveTx(w.Context(), tx, tasks[0])
		return []delaytask.SaveResult{{ID: id, Err: errors.Join(err, tx.end(true))}}
	}},
}

// saveAtOnce saves each task for a caller of its own.
func saveAtOnce(w *world, e *Engine, tasks []delaytask.Save) (saved []delaytask.SaveResult) {
	var answers []<-chan answer
	for _, task := range tasks {
		answers = append(answers, w.saveLater(w.Context(), e, task))
	}
	for _, done := range answers {
		a := <-done
		saved = append(saved, delaytask.SaveResult{ID: a.id, Err: a.err})
	}
	return saved
}

// takeID inserts a foreign row under the last id of the first insert of at least least rows.
func takeID(store store.Store, least int, lost bool, foreign func(row.Row) row.Row) (store.Store, *atomic.Int64) {
	stolen := new(atomic.Int64)
	var calls atomic.Int64
	return insertHook{store, func(_ context.Context, rows []row.Row) error {
		if lost && calls.Add(1) == 1 {
			return classError(row.ClassUnknown, "the statement is lost")
		}
		last := rows[len(rows)-1]
		if len(rows) < least || !stolen.CompareAndSwap(0, last.ID) {
			time.Sleep(time.Second) // so that callers gather
			return nil
		}
		return store.Insert(context.Background(), nil, []row.Row{foreign(last)})
	}}, stolen
}

func TestPlainInsertThatTakesOurNextIDFailsNoSave(t *testing.T) {
	for name, c := range foreignRows {
		for how, way := range ways {
			t.Run(name+how, func(t *testing.T) {
				inBubble(t, func(w *world) {
					store, stolen := takeID(txStore{w.store}, way.least, way.lost, c.foreign)
					tasks := make([]delaytask.Save, way.tasks)
					for i := range tasks {
						tasks[i] = w.task("a", c.delay)
						if c.at {
							tasks[i] = w.task("a", 0, delaytask.WithTime(time.Now().Add(c.delay)))
						}
					}
					for _, r := range way.save(w, w.idle(store, nil), tasks) {
						if r.Err != nil || r.ID == stolen.Load() || w.row(r.ID).Tag != "a" {
							w.Errorf("got %+v; the foreign row has %d", r, stolen.Load())
						}
					}
					if n := w.stored(); n != way.tasks+1 || !w.exists(stolen.Load()) {
						w.Errorf("%d rows are stored, want %d and the foreign one", n, way.tasks)
					}
				})
			})
		}
	}
}

// The plain INSERT has the key as well, so its task is the only one.
func TestPlainInsertOfTheSameKeyThatTakesOurNextIDIsADuplicate(t *testing.T) {
	for _, how := range []string{"Alone", "InATransaction"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(w *world) {
				store, stolen := takeID(txStore{w.store}, 1, false, plainInsert)
				task := w.task("a", time.Hour, delaytask.WithKey("k"))
				got := ways[how].save(w, w.idle(store, nil), []delaytask.Save{task})[0]
				if got.ID != stolen.Load() || !errors.Is(got.Err, delaytask.ErrDuplicate) || w.stored() != 1 {
					w.Errorf("got %+v, want %d and ErrDuplicate; %d rows are stored", got, stolen.Load(), w.stored())
				}
			})
		})
	}
}

// A row stays the save's own, whatever becomes of it before it is known to be stored.
func TestSaveWithALostReplyWhoseRowHasChangedIsStoredOnce(t *testing.T) {
	inBubbles(t, map[string]func(*world, *Engine, int64) error{
		"Rescheduled": func(w *world, _ *Engine, id int64) error {
			r := w.row(id)
			c := row.Change{
				ID:       id,
				Version:  r.Version,
				From:     row.Pending,
				To:       row.Pending,
				Delay:    r.Delay,
				Expected: r.Expected.Add(time.Minute),
			}
			c.Due = c.Expected
			_, err := w.store.Update(w.Context(), nil, []row.Change{c})
			return err
		},
		"Cancelled": func(w *world, e *Engine, id int64) error {
			_, err := e.Cancel(w.Context(), nil, control.Ref{ID: id}, false)
			return err
		},
	}, func(w *world, change func(*world, *Engine, int64) error) {
		calls, first := 0, int64(0)
		var e *Engine
		e = w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
			switch calls++; calls {
			case 1:
				first = rows[0].ID
				if err := w.store.Insert(context.Background(), nil, rows); err != nil {
					w.Error(err)
				}
				return classError(row.ClassUnknown, "the reply is lost")
			case 2:
				return change(w, e, first)
			}
			return nil
		}}, nil)
		id := w.save(e, "a", time.Hour)
		if id != first || w.row(id).Version == 0 || w.stored() != 1 {
			w.Errorf("saved as %d, want %d; %d rows are stored", id, first, w.stored())
		}
	})
}

// A proxy that loses its server may send a statement again by itself. No outcome is unknown to the saver then.
func TestInsertThatArrivesTwiceIsStoredOnce(t *testing.T) {
	inBubbles(t, map[string]bool{"Untouched": false, "Claimed": true}, func(w *world, claimed bool) {
		calls := 0
		e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
			if calls++; calls > 2 {
				return nil
			}
			err := w.store.Insert(context.Background(), nil, rows)
			if first := w.row(rows[0].ID); claimed && first.Version == 0 {
				first.Version, first.Status, first.Executor = 1, row.Executing, another
				w.store.Plant(first)
			}
			return err
		}}, nil)
		later := delaytask.WithTime(time.Now().Add(time.Hour))
		for _, task := range []delaytask.Save{w.task("a", 0), w.task("a", 0, later)} {
			before := w.stored()
			id, _, err := e.Save(w.Context(), task)
			if err != nil || !w.exists(id) || w.stored() != before+1 {
				w.Errorf("got %d, %v; %d more rows are stored", id, err, w.stored()-before)
			}
		}
	})
}
