package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/processor"
)

// txStore adds transactions to the store in memory: what is written in one is seen by others when it commits, and the
// rows that it changed are locked until then.
type txStore struct {
	*memstore.Store
}

type memTx struct {
	mu     sync.Mutex
	ended  bool
	unlock []func()
	writes []func() error
}

func (*memTx) ExecContext(context.Context, string, ...any) (sql.Result, error) { panic("not used") }
func (*memTx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) { panic("not used") }

func (tx *memTx) end(commit bool) error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.ended {
		return sql.ErrTxDone
	}
	tx.ended = true
	for _, unlock := range tx.unlock {
		unlock()
	}
	var err error
	for _, write := range tx.writes {
		if commit {
			err = errors.Join(err, write())
		}
	}
	return err
}

func (s txStore) Insert(ctx context.Context, t store.Tx, rows []row.Row) error {
	tx, ok := t.(*memTx)
	if !ok {
		return s.Store.Insert(ctx, nil, rows)
	}
	for _, r := range rows {
		active, _ := s.Store.FindActive(ctx, nil, []row.TagKey{{Tag: r.Tag, Key: r.Key}})
		same, broken, _ := s.Store.Get(ctx, nil, []int64{r.ID})
		if r.Key != "" && len(active) > 0 || len(same)+len(broken) > 0 {
			return classError(row.ClassDuplicate, "taken")
		}
	}
	tx.writes = append(tx.writes, func() error { return s.Store.Insert(context.Background(), nil, rows) })
	return nil
}

func (s txStore) Update(ctx context.Context, t store.Tx, changes []row.Change) (int, error) {
	tx, ok := t.(*memTx)
	if !ok {
		return s.Store.Update(ctx, nil, changes)
	}
	applied := 0
	for _, c := range changes {
		states, err := s.States(ctx, []int64{c.ID})
		if err != nil {
			return 0, err
		}
		if len(states) == 1 && states[0].Version == c.Version && states[0].Status == c.From {
			applied++
			tx.unlock = append(tx.unlock, s.Lock(c.ID))
			tx.writes = append(tx.writes, func() error {
				_, err := s.Store.Update(context.Background(), nil, []row.Change{c})
				return err
			})
		}
	}
	return applied, nil
}

func (s txStore) Get(ctx context.Context, _ store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	return s.Store.Get(ctx, nil, ids)
}

func (s txStore) FindActive(ctx context.Context, _ store.Tx, keys []row.TagKey) ([]row.Row, error) {
	return s.Store.FindActive(ctx, nil, keys)
}

func (s txStore) LockActive(
	ctx context.Context, t store.Tx, key row.TagKey,
) ([]row.Row, []row.Broken, error) {
	rows, err := s.Store.FindActive(ctx, nil, []row.TagKey{key})
	if len(rows) > 0 {
		t.(*memTx).unlock = append(t.(*memTx).unlock, s.Lock(rows[0].ID))
	}
	return rows, nil, err
}

func TestSaveInATransactionRunsOnceItIsCommitted(t *testing.T) {
	type opened struct {
		delay, open time.Duration // of the task, of the transaction
		late        time.Duration // after the later of the two
	}
	inBubbles(t, map[string]opened{
		"CommittedLongBeforeItIsDue": {3 * time.Second, 100 * time.Millisecond, 2 * time.Millisecond},
		"DueSoon":                    {100 * time.Millisecond, 10 * time.Millisecond, 2 * time.Millisecond},
		"DueAtOnce":                  {0, 10 * time.Millisecond, 30 * time.Millisecond},
		"OpenForASecond":             {0, 900 * time.Millisecond, 1100 * time.Millisecond},
		"OpenForLong":                {0, 20 * time.Second, 6 * time.Second},
	}, func(w *world, c opened) {
		e := w.engine(txStore{w.store}, serving{"a": nothing, "b": nothing})
		time.Sleep(3 * time.Second)
		tx, began := &memTx{}, time.Now()
		id, err := e.SaveTx(w.Context(), tx, w.task("a", c.delay))
		w.must(err)
		neighbour := w.save(e, "b", 50*time.Millisecond)
		time.Sleep(c.open)
		if w.exists(id) || len(w.runs.of(id)) > 0 {
			w.Error("the task is visible before the commit")
		}
		w.must(tx.end(true))
		time.Sleep(10 * time.Second)
		w.completed(neighbour, 2*time.Millisecond)
		w.completed(id, time.Hour)
		if late := w.runs.of(id)[0].at.Sub(began) - max(c.delay, c.open); late > c.late+time.Millisecond {
			w.Errorf("started %v late, want at most %v", late, c.late)
		}
	})
}

func TestSaveInATransactionMeetsAKeyAndAForeignNumber(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(txStore{w.store}, nil)
		taken := w.save(e, "a", time.Hour, delaytask.WithKey("k"))
		tx := &memTx{}
		id, err := e.SaveTx(w.Context(), tx, w.task("a", time.Hour, delaytask.WithKey("k")))
		if id != taken || !errors.Is(err, delaytask.ErrDuplicate) {
			w.Errorf("got %d, %v; want %d and ErrDuplicate", id, err, taken)
		}
		id, err = e.SaveTx(w.Context(), tx, w.task("b", time.Hour, delaytask.WithID(taken)))
		if !errors.Is(err, delaytask.ErrConflict) {
			w.Errorf("got %d, %v; want ErrConflict", id, err)
		}
	})
}

func TestWhatARolledBackTransactionWantedIsForgotten(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(txStore{w.store}, serving{"a": nothing})
		other := w.idle(w.store, nil)
		time.Sleep(time.Second)
		rolledBack := func(change func(tx *memTx) error) {
			var tx memTx
			w.must(cmp.Or(change(&tx), tx.end(false)))
		}
		moved := w.save(e, "a", time.Minute)
		rolledBack(func(tx *memTx) error {
			_, err := e.Reschedule(w.Context(), tx, control.Ref{ID: moved}, 2*time.Second, time.Time{}, nil)
			return err
		})
		_, err := other.Reschedule(w.Context(), nil, control.Ref{ID: moved}, 30*time.Second, time.Time{}, nil)
		w.must(err)
		const saved = 7 << 40
		rolledBack(func(tx *memTx) error {
			_, err := e.SaveTx(w.Context(), tx, w.task("a", 2*time.Second, delaytask.WithID(saved)))
			return err
		})
		w.save(other, "a", 30*time.Second, delaytask.WithID(saved))
		time.Sleep(20 * time.Second)
		for name, id := range map[string]int64{"put off": moved, "saved anew": saved} {
			if n := len(w.runs.of(id)); n > 0 {
				w.Errorf("the task that was %s after a rollback has run by the time of the transaction", name)
			}
		}
		time.Sleep(20 * time.Second)
		for id, version := range map[int64]int64{moved: 3, saved: 2} {
			w.completed(id, 2*time.Millisecond)
			if r := w.row(id); r.Version != version {
				w.Errorf("task %d is at version %d, want %d: it was claimed once more", id, r.Version, version)
			}
		}
		if e.arm.Commits.Awaited() || e.runqueue.Counts().Timers != 0 {
			w.Error("something is left of a task")
		}
	})
}

// The look-ahead of the node whose share the task is comes too late here: the node that reschedules has to watch for
// the commit.
func TestRescheduleInATransactionOfANodeThatTheSharesPassOver(t *testing.T) {
	inBubble(t, func(w *world) {
		rarely := func(c *Config) { c.LookAhead, c.Window = 10*time.Second, 20*time.Second }
		e := w.engine(txStore{w.store}, serving{"a": nothing}, rarely)
		w.engine(txStore{w.store}, serving{"a": nothing}, rarely)
		time.Sleep(time.Minute) // both have seen each other, and for long enough
		var others []int64
		for len(others) < 20 {
			id := w.save(e, "a", time.Hour)
			if !e.arm.Mine(id, w.row(id).Due, "a") {
				others = append(others, id)
			}
		}
		time.Sleep(30 * time.Second) // so that they are dealt out, and do not stay with their saver
		tx := &memTx{}
		for _, id := range others {
			_, err := e.Reschedule(w.Context(), tx, control.Ref{ID: id}, 500*time.Millisecond, time.Time{}, nil)
			w.must(err)
		}
		time.Sleep(10 * time.Millisecond)
		w.must(tx.end(true))
		time.Sleep(15 * time.Second)
		w.allCompleted(others, 3*time.Millisecond)
	})
}

// completeTx is a processor that completes its task in a transaction, which it ends after a while.
func completeTx(w *world, hold time.Duration, commit bool, result error) processor.Func {
	return func(ctx context.Context, _ *delaytask.Task) error {
		tx := &memTx{}
		err := processor.CompleteTx(ctx, tx)
		time.Sleep(hold)
		if endErr := tx.end(commit && err == nil); endErr != nil {
			w.Error(endErr)
		}
		if err != nil {
			return err
		}
		return result
	}
}

func TestCompleteTxThatCommits(t *testing.T) {
	inBubble(t, func(w *world) {
		var slow atomic.Int64
		store := renewHook{txStore{w.store}, func(ctx context.Context, leases []row.Lease) ([]row.State, error) {
			if slices.ContainsFunc(leases, func(l row.Lease) bool { return l.ID == slow.Load() }) {
				w.Error("the row was in a renewal batch while a transaction held it")
			}
			return w.store.Renew(ctx, leases)
		}}
		e := w.engine(store, serving{
			"quick": completeTx(w, 0, true, nil),
			"slow":  completeTx(w, 12*time.Second, true, nil),
			"odd":   completeTx(w, 0, true, errors.New("an error after the commit changes nothing")),
			"stays": func(ctx context.Context, task *delaytask.Task) error {
				err := completeTx(w, 0, true, nil)(ctx, task)
				time.Sleep(8 * time.Second) // more than one look at the versions
				if cause := context.Cause(ctx); cause != nil {
					w.Errorf("the context ended with %v", cause)
				}
				return err
			},
			"open": func(ctx context.Context, _ *delaytask.Task) error {
				tx := &memTx{}
				time.AfterFunc(5*time.Second, func() { _ = tx.end(true) })
				return processor.CompleteTx(ctx, tx)
			},
			"a": untilEnd(20*time.Second, nil),
		})
		time.Sleep(time.Second)
		var ids []int64
		for _, tag := range []string{"quick", "slow", "odd", "stays", "open"} {
			ids = append(ids, w.save(e, tag, 0))
		}
		slow.Store(ids[1])
		neighbour := w.save(e, "a", 0, delaytask.WithTTR(3*time.Second))
		time.Sleep(40 * time.Second)
		for _, id := range append(ids, neighbour) {
			w.completed(id, 100*time.Millisecond)
			if r := w.row(id); r.Version != 2 || r.Errors != nil {
				w.Errorf("row: %+v", r)
			}
		}
	})
}

func TestCompleteTxThatRollsBack(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(txStore{w.store}, serving{"a": completeTx(w, time.Second, false, nil)})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(3))
		time.Sleep(30 * time.Second)
		if r := w.row(id); r.Status != row.Failed || r.Attempt != 3 || len(w.runs.of(id)) != 3 {
			w.Errorf("%d runs: %+v", len(w.runs.of(id)), r)
		}
	})
}

// After CompleteTx nothing here reckons with the lease any more, so only a look at the row tells that another process
// has it.
func TestLeaseThatIsLostAfterARolledBackCompleteTxEndsTheContext(t *testing.T) {
	inBubble(t, func(w *world) {
		ends := make(chan ended, 1)
		wait, calls := untilEnd(time.Minute, ends), 0
		e := w.engine(txStore{w.store}, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if calls++; calls > 1 {
				return nil // once its context has ended, this node may take the task as well
			}
			tx := &memTx{}
			if err := errors.Join(processor.CompleteTx(ctx, tx), tx.end(false)); err != nil {
				w.Error(err)
			}
			return wait(ctx, task)
		}})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, delaytask.WithTTR(3*time.Second))
		time.Sleep(time.Second)
		w.engine(txStore{w.store}, serving{"a": nothing}) // takes over
		select {
		case got := <-ends:
			if !errors.Is(got.cause, delaytask.ErrLeaseLost) {
				w.Errorf("the context ended with %v", got.cause)
			}
		case <-time.After(10 * time.Second):
			w.Error("the context has not ended 7 s after the lease")
		}
		time.Sleep(time.Second)
		r := w.row(id)
		if runs := w.runs.of(id); len(runs) != 2 || r.Status != row.Completed || r.Version != runs[1].task.Version+1 {
			w.Errorf("%d runs: %+v", len(runs), r)
		}
	})
}

func TestCompleteTxOfALateExecutorIsRefused(t *testing.T) {
	inBubble(t, func(w *world) {
		errs := make(chan error, 1)
		e := w.engine(txStore{w.store}, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			r := w.row(task.ID)
			r.Version++
			r.Executor = another
			w.store.Plant(r)
			tx := &memTx{}
			errs <- processor.CompleteTx(ctx, tx)
			return tx.end(false)
		}})
		time.Sleep(time.Second)
		id := w.save(e, "a", 0)
		if err := <-errs; !errors.Is(err, delaytask.ErrLeaseLost) {
			w.Errorf("got %v, want ErrLeaseLost", err)
		}
		time.Sleep(time.Second)
		if r := w.row(id); r.Version != 2 || r.Status != row.Executing {
			w.Errorf("row: %+v", r)
		}
	})
}

func TestStopThatInterruptsACompleteTxBurnsNoAttempt(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(txStore{w.store}, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			tx := &memTx{}
			if err := processor.CompleteTx(ctx, tx); err != nil {
				return err
			}
			<-ctx.Done() // database/sql rolls back a transaction whose context ends
			return errors.Join(ctx.Err(), tx.end(false))
		}}, func(c *Config) { c.StopGrace = time.Second })
		time.Sleep(time.Second)
		id := w.save(e, "a", 0, delaytask.WithMaxAttempts(1))
		time.Sleep(time.Second)
		w.lossy[e] = true
		if err := e.Stop(w.Context()); !errors.Is(err, delaytask.ErrGraceEnded) {
			w.Errorf("got %v, want ErrGraceEnded", err)
		}
		if r := w.row(id); r.Status != row.Pending || r.Attempt != 0 {
			w.Errorf("row: %+v", r)
		}
	})
}
