package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// plainTwin is the row that another program's plain INSERT makes of the same task a moment later, under the number that r was to have.
func plainTwin(r row.Row) row.Row {
	expected := r.Expected.Add(time.Microsecond)
	return row.Row{
		ID: r.ID, Tag: r.Tag, Key: r.Key, Body: r.Body, Delay: r.Delay, Expected: expected, Due: expected, TTR: time.Minute, MaxAttempts: 20,
	}
}

// tomorrow is that of an INSERT which names the moment, and so has no delay.
func tomorrow(r row.Row) row.Row {
	twin := plainTwin(r)
	twin.Delay, twin.Expected = 0, r.Expected.Add(24*time.Hour)
	twin.Due = twin.Expected
	return twin
}

// sameMoment is that of an INSERT which names the moment that the save asks for.
func sameMoment(r row.Row) row.Row {
	twin := plainTwin(r)
	twin.Delay, twin.Expected, twin.Due = 0, r.Expected, r.Expected
	return twin
}

var strangers = map[string]struct {
	delay time.Duration
	at    bool // the moment is asked for, not the delay
	twin  func(row.Row) row.Row
}{
	"SameDelay":  {time.Hour, false, plainTwin},
	"NoDelay":    {0, false, plainTwin},
	"Tomorrow":   {0, false, tomorrow},
	"SameMoment": {time.Hour, true, sameMoment},
}

// thief plants a stranger's row under the last of the numbers that the first insert brings.
func thief(store Store, twin func(row.Row) row.Row) (Store, *atomic.Int64) {
	stolen := new(atomic.Int64)
	return insertHook{store, func(_ context.Context, rows []row.Row) error {
		last := rows[len(rows)-1]
		if !stolen.CompareAndSwap(0, last.ID) {
			return nil
		}
		return store.Insert(context.Background(), nil, []row.Row{twin(last)})
	}}, stolen
}

func TestPlainInsertOfTheSameTaskThatTakesOurNextIDCostsNobody(t *testing.T) {
	for name, c := range strangers {
		task := func(w *world) processor.Save {
			if c.at {
				return w.task("a", 0, processor.WithTime(time.Now().Add(c.delay)))
			}
			return w.task("a", c.delay)
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				store, stolen := thief(w.store, c.twin)
				id, stored, err := w.idle(store, nil).Save(w.Context(), task(w))
				if err != nil || id == stolen.Load() || !w.exists(id) || stored.ID != id || w.stored() != 2 {
					w.Errorf("got %d, %v; the stranger has %d, and %d rows are stored", id, err, stolen.Load(), w.stored())
				}
			})
		})
		t.Run(name+"AmongMany", func(t *testing.T) {
			inBubble(t, func(w *world) {
				store, stolen := thief(w.store, c.twin)
				tasks := []processor.Save{task(w), task(w), task(w)}
				for i, r := range w.saveAll(w.Context(), w.idle(store, nil), tasks) {
					if r.Err != nil || r.ID == stolen.Load() || !w.exists(r.ID) {
						w.Errorf("task %d: %+v; the stranger has %d", i, r, stolen.Load())
					}
				}
				if n := w.stored(); n != 4 {
					w.Errorf("%d rows are stored, want three and the stranger's", n)
				}
			})
		})
		t.Run(name+"InATransaction", func(t *testing.T) {
			inBubble(t, func(w *world) {
				store, stolen := thief(txStore{w.store}, c.twin)
				tx := &memTx{}
				id, err := w.idle(store, nil).SaveTx(w.Context(), tx, task(w))
				if err := errors.Join(err, tx.end(true)); err != nil {
					w.Fatal(err)
				}
				if id == stolen.Load() || !w.exists(id) || w.stored() != 2 {
					w.Errorf("got %d; the stranger has %d, and %d rows are stored", id, stolen.Load(), w.stored())
				}
			})
		})
	}
}

// The stranger has our key as well, so his task is the one that there is.
func TestPlainInsertOfTheSameKeyThatTakesOurNextIDIsADuplicate(t *testing.T) {
	save := func(w *world, e *Engine) (int64, error) {
		id, _, err := e.Save(w.Context(), w.task("a", time.Hour, processor.WithKey("k")))
		return id, err
	}
	saveTx := func(w *world, e *Engine) (int64, error) {
		return e.SaveTx(w.Context(), &memTx{}, w.task("a", time.Hour, processor.WithKey("k")))
	}
	for name, save := range map[string]func(*world, *Engine) (int64, error){"Save": save, "SaveTx": saveTx} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				store, stolen := thief(txStore{w.store}, plainTwin)
				id, err := save(w, w.idle(store, nil))
				if id != stolen.Load() || !errors.Is(err, processor.ErrDuplicate) || w.stored() != 1 {
					w.Errorf("got %d, %v; want %d and ErrDuplicate; %d rows are stored", id, err, stolen.Load(), w.stored())
				}
			})
		})
	}
}

// A reply that was lost says nothing of whose row it is that the next try meets.
func TestPlainInsertThatTakesTheIDOfALostStatementCostsNobody(t *testing.T) {
	for name, c := range strangers {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				calls, stolen := 0, int64(0)
				e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
					switch calls++; calls {
					case 1:
						return classError(row.ClassUnknown, "the statement is lost")
					case 2:
						stolen = rows[0].ID
						return w.store.Insert(context.Background(), nil, []row.Row{c.twin(rows[0])})
					}
					return nil
				}}, nil)
				id := w.save(e, "a", c.delay)
				if id == stolen || !w.exists(id) || w.stored() != 2 {
					w.Errorf("saved as %d; the stranger has %d, and %d rows are stored", id, stolen, w.stored())
				}
			})
		})
	}
}

// What becomes of a row while nobody knows yet that it is stored does not make it a stranger's.
func TestSaveWithALostReplyWhoseRowHasChangedIsStoredOnce(t *testing.T) {
	for name, change := range map[string]func(*world, *Engine, int64) error{
		"Rescheduled": func(w *world, _ *Engine, id int64) error {
			r := w.row(id)
			c := row.Change{ID: id, Version: r.Version, From: row.Pending, To: row.Pending, Delay: r.Delay, Expected: r.Expected.Add(time.Minute)}
			c.Due = c.Expected
			_, err := w.store.Update(w.Context(), nil, []row.Change{c})
			return err
		},
		"Cancelled": func(w *world, e *Engine, id int64) error {
			_, err := e.Cancel(w.Context(), nil, Ref{ID: id}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
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
		})
	}
}

// A proxy that loses its server may send a statement again by itself. Nobody here has seen an unknown outcome then.
func TestInsertThatArrivesTwiceIsStoredOnce(t *testing.T) {
	for name, claimed := range map[string]bool{"Untouched": false, "Claimed": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				calls := 0
				e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
					if calls++; calls > 2 {
						return nil
					}
					err := w.store.Insert(context.Background(), nil, rows)
					if first := w.row(rows[0].ID); claimed && first.Version == 0 {
						first.Version, first.Status, first.Executor = 1, row.Executing, "another node"
						w.store.Plant(first)
					}
					return err
				}}, nil)
				for _, task := range []processor.Save{w.task("a", 0), w.task("a", 0, processor.WithTime(time.Now().Add(time.Hour)))} {
					before := w.stored()
					id, _, err := e.Save(w.Context(), task)
					if err != nil || !w.exists(id) || w.stored() != before+1 {
						w.Errorf("got %d, %v; %d more rows are stored", id, err, w.stored()-before)
					}
				}
			})
		})
	}
}
