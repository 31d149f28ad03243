//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// saveTx saves a task in the transaction.
func saveTx(t *testing.T, s *scheduler.Scheduler, tx *sql.Tx, delay time.Duration) int64 {
	t.Helper()
	id, err := s.SaveDelayTaskTx(t.Context(), tx, "t", "body", delay)
	servertest.OK(t, err)
	return id
}

func commit(t *testing.T, tx *sql.Tx) {
	t.Helper()
	servertest.OK(t, tx.Commit())
}

// ids returns a processor that reports its tasks, and the channel of their ids.
func ids() (processor.Func, <-chan int64) {
	ran := make(chan int64, 10_000)
	return func(_ context.Context, task *delaytask.Task) error {
		ran <- task.ID
		return nil
	}, ran
}

func TestTransactionDecidesWhetherTheTaskExists(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		serve(t, s, "other", nothing)
		warm(t, s, "other")
		execute(t, db, "DELETE FROM delay_task_message")

		rolledBack := begin(t, db)
		lost := saveTx(t, s, rolledBack, 0)
		servertest.OK(t, rolledBack.Rollback())
		tx := begin(t, db)
		id := saveTx(t, s, tx, 0)
		if n := number(t, db, allRows); n != 0 {
			t.Errorf("%d rows are visible before the commit", n)
		}
		commit(t, tx) // the due time has passed by now
		committed := time.Now()
		if got := servertest.Receive(t, ran, "task of the transaction runs"); got != id {
			t.Errorf("task %d ran, want %d", got, id)
		}
		within(t, 2*time.Second, committed, time.Now(), "start after the commit")
		reaches(t, s, id, delaytask.Completed)
		if _, err := s.Get(t.Context(), delaytask.ID(lost)); !errors.Is(err, delaytask.ErrNotFound) {
			t.Errorf("the save that was rolled back: got %v, want %v", err, delaytask.ErrNotFound)
		}

		// The same holds for changes.
		after := func(end func(*sql.Tx) error, change func(*sql.Tx, delaytask.Ref) (delaytask.Status, error)) int64 {
			t.Helper()
			id, tx := save(t, s, "t", time.Hour), begin(t, db)
			met, err := change(tx, delaytask.ID(id))
			if err := errors.Join(err, end(tx)); met != delaytask.Pending || err != nil {
				t.Fatalf("a change met %s: %v", met, err)
			}
			return id
		}
		cancel := func(tx *sql.Tx, ref delaytask.Ref) (delaytask.Status, error) {
			return s.CancelTx(t.Context(), tx, ref)
		}
		toNow := func(tx *sql.Tx, ref delaytask.Ref) (delaytask.Status, error) {
			return s.RescheduleTx(t.Context(), tx, ref, 0)
		}
		want := map[int64]delaytask.Status{
			after((*sql.Tx).Rollback, cancel): delaytask.Pending, after((*sql.Tx).Rollback, toNow): delaytask.Pending,
			after((*sql.Tx).Commit, cancel): delaytask.Cancelled,
		}
		if moved, got := after((*sql.Tx).Commit, toNow),
			servertest.Receive(t, ran, "rescheduled task runs"); got != moved {
			t.Errorf("task %d ran, want %d", got, moved)
		}
		for id, status := range want {
			if task := get(t, s, id); task.Status != status || !task.Started.IsZero() || task.Delay != time.Hour {
				t.Errorf("task %d became %+v, want %s", id, task, status)
			}
		}
	})
}

func TestLongTransactionDelaysNoOtherTask(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		serve(t, s, "other", nothing)
		warm(t, s, "other")
		tx := begin(t, db)
		late := saveTx(t, s, tx, 0)
		for begun := time.Now(); time.Since(begun) < 3*time.Second; {
			saved := time.Now()
			id := save(t, s, "t", 100*time.Millisecond)
			if got := servertest.Receive(t, ran, "task beside the transaction runs"); got != id {
				t.Fatalf("task %d ran, want %d", got, id)
			}
			within(t, time.Second, saved, time.Now(), "a task beside the transaction")
		}
		commit(t, tx)
		committed := time.Now()
		if got := servertest.Receive(t, ran, "task of the long transaction runs"); got != late {
			t.Errorf("task %d ran, want %d", got, late)
		}
		within(t, 2*time.Second, committed, time.Now(), "start after the commit")
	})
}

// effects creates the table that processors write to.
func effects(t *testing.T, db *sql.DB) {
	t.Helper()
	execute(t, db, "CREATE TABLE effects (n BIGINT PRIMARY KEY, task BIGINT NOT NULL)")
}

// effect writes the task's effect and completes the task in one transaction, and leaves its end to the caller.
func effect(ctx context.Context, db *sql.DB, task *delaytask.Task, end func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?, ?)", rand.Int64(), task.ID); err != nil {
		return err
	}
	if err := processor.CompleteTx(ctx, tx); err != nil {
		return err
	}
	return end(tx)
}

func TestEffectsInTheTransactionOfCompleteTxHappenExactlyOnce(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		effects(t, db)
		var want []int64
		serve(t, s, "t", func(ctx context.Context, task *delaytask.Task) error {
			return effect(ctx, db, task, func(tx *sql.Tx) error {
				switch {
				case task.Attempt == 1 && task.ID%3 == 0:
					return errors.New("the transaction rolls back")
				case task.Attempt == 1 && task.ID%3 == 1:
					return tx.Rollback() // and nil as if all were well
				}
				if err := tx.Commit(); err != nil {
					return err
				}
				if task.ID%2 == 0 {
					return errors.New("after the commit: too late to matter")
				}
				return nil
			})
		}, processor.Concurrency(8))
		for range 30 {
			want = append(want, save(t, s, "t", 0))
		}
		for _, id := range want {
			task := reaches(t, s, id, delaytask.Completed)
			attempts := 1
			if id%3 < 2 {
				attempts = 2
			}
			if task.Attempt != attempts || len(task.Errors) != attempts-1 {
				t.Errorf("task %d was completed by attempt %d with the errors %+v", id, task.Attempt, task.Errors)
			}
		}
		once := number(t, db, "SELECT COUNT(DISTINCT task) FROM effects")
		if all := number(t, db, "SELECT COUNT(*) FROM effects"); all != len(want) || once != all {
			t.Errorf("%d effects of %d tasks, want %d of %d", all, once, len(want), len(want))
		}
	})
}

// The test takes the lease away, as a rescue by another node would.
func TestLateCompletionIsRefused(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		effects(t, db)
		answer := make(chan error, 1)
		serve(t, s, "t", func(ctx context.Context, task *delaytask.Task) error {
			_, err := db.ExecContext(ctx, "UPDATE delay_task_message SET status = 0, version = version + 1,"+
				" due_time = '2099-01-01 00:00:00.000000' WHERE id = ?", task.ID)
			if err != nil {
				return err
			}
			// The context ends when the loss is noticed, which may be now.
			err = effect(context.WithoutCancel(ctx), db, task, (*sql.Tx).Commit)
			answer <- err
			return err
		})
		id := save(t, s, "t", 0)
		if err := servertest.Receive(t, answer, "CompleteTx answers"); !errors.Is(err, delaytask.ErrLeaseLost) {
			t.Errorf("got %v, want %v", err, delaytask.ErrLeaseLost)
		}
		servertest.Stop(t, s) // all results are written then, had there been one
		row := columns(t, db, id)
		if row["status"] != "0" || row["version"] != "2" || row["errors"] != "NULL" {
			t.Errorf("the row became %v", row)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM effects"); n != 0 {
			t.Errorf("%d effects, want none", n)
		}
	})
}
