//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// Many savers put off and replace one task, while two nodes claim it over and over. Each saver writes numbers that
// grow. A number that was accepted runs, unless a later one was accepted into the same task. A refused one never runs.
func TestSaversOfOneKeyRaceAgainstClaims(t *testing.T) {
	const savers, saves = 6, 60
	each(t, func(t *testing.T, d dbtest.Database) {
		var order atomic.Int64
		var mu sync.Mutex
		ran := map[int64]string{}       // the body that each task ran with
		accepted := map[int64][]int64{} // the numbers that each task took, as the saves returned
		note := func(_ context.Context, task *delaytask.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if before, twice := ran[task.ID]; twice {
				t.Errorf("task %d ran twice: %s, %s", task.ID, before, task.Body)
			}
			ran[task.ID] = string(task.Body)
			return nil
		}
		nodes := []*scheduler.Scheduler{open(t, d), open(t, d)}
		for _, s := range nodes {
			serve(t, s, "t", note)
		}
		returned := map[int64]int64{} // when the save of a number returned
		refused := map[int64]bool{}
		var group sync.WaitGroup
		for i := range savers {
			group.Go(func() {
				for n := range saves {
					number := order.Add(1)
					delay := time.Duration(n%4) * 5 * time.Millisecond
					id, err := nodes[i%2].SaveDelayTask(t.Context(), "t", number, delay, delaytask.WithKey("k"),
						delaytask.WithOnConflict(delaytask.ReplaceTimeAndBody))
					switch {
					case err == nil:
						mu.Lock()
						accepted[id] = append(accepted[id], number)
						returned[number] = order.Add(1)
						mu.Unlock()
					case errors.Is(err, delaytask.ErrNotPending):
						mu.Lock()
						refused[number] = true
						mu.Unlock()
					case !errors.Is(err, delaytask.ErrContended):
						t.Errorf("save: %v", err)
					}
				}
			})
		}
		group.Wait()
		for id := range accepted {
			reaches(t, nodes[0], id, delaytask.Completed)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(ran) != len(accepted) || len(ran) < 2 {
			t.Errorf("%d tasks ran, and %d were accepted", len(ran), len(accepted))
		}
		for id, numbers := range accepted {
			last, err := strconv.ParseInt(ran[id], 10, 64)
			servertest.OK(t, err)
			if refused[last] {
				t.Errorf("task %d ran with %d, whose save was told that nothing is changed", id, last)
			}
			for _, number := range numbers {
				// A save that began after the last one had returned was written later.
				if number > returned[last] && returned[last] != 0 {
					t.Errorf("task %d ran with %d, although the later %d was accepted", id, last, number)
				}
			}
		}
		t.Logf("%d tasks took %d of %d saves", len(ran), savers*saves-len(refused), savers*saves)
	})
}

// readsBefore begins a transaction that has read all tasks. It returns nil where that one may not change what others
// change meanwhile. On SQLite transactions wait for each other from their begin. With innodb_snapshot_isolation they
// end with error 1020.
func readsBefore(t *testing.T, d dbtest.Database, db *sql.DB) *sql.Tx {
	t.Helper()
	if d.Kind == dbtest.SQLite {
		return nil
	}
	var name, value string
	err := db.QueryRowContext(t.Context(), "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&name, &value)
	switch {
	case err == nil && value == "ON":
		return nil
	case !errors.Is(err, sql.ErrNoRows):
		servertest.OK(t, err)
	}
	tx := begin(t, db)
	number(t, tx, allRows)
	return tx
}

// Each transaction meets the key, and changes its task in its turn. The second one began to read before the task was
// there.
func TestTransactionsRescheduleOneTaskInTurn(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		second := readsBefore(t, d, db)
		id := save(t, s, "t", time.Hour, delaytask.WithKey("k"))
		saveIn := func(tx delaytask.Tx, body string) (int64, error) {
			return s.SaveDelayTaskTx(t.Context(), tx, "t", body, time.Minute, delaytask.WithKey("k"),
				delaytask.WithOnConflict(delaytask.ReplaceTimeAndBody))
		}
		first := begin(t, db)
		if got, err := saveIn(first, "first"); got != id || err != nil {
			t.Fatalf("the first: %d, %v, want %d", got, err, id)
		}
		if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || task.Version != 0 {
			t.Errorf("the change is visible before the commit: %+v, %v", task, err)
		}
		done := make(chan error, 1)
		go func() {
			if second == nil {
				second = begin(t, db)
			}
			got, err := saveIn(second, "second")
			if err == nil && got != id {
				err = fmt.Errorf("the second: %d, want %d", got, id)
			}
			done <- errors.Join(err, second.Commit())
		}()
		commit(t, first)
		servertest.OK(t, servertest.Receive(t, done, "the second transaction ends"))
		task, err := s.Get(t.Context(), delaytask.ID(id))
		if err != nil || task.Version != 2 || string(task.Body) != "second" || task.Delay != time.Minute {
			t.Errorf("the task is %+v, %v", task, err)
		}

		rolledBack := begin(t, db)
		_, err = saveIn(rolledBack, "third")
		servertest.OK(t, errors.Join(err, rolledBack.Rollback()))
		if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || task.Version != 2 {
			t.Errorf("a transaction that was rolled back has changed the task: %+v, %v", task, err)
		}

		const many = 8 // which meet the key at once, and must not be each other's deadlock
		var group sync.WaitGroup
		for i := range many {
			group.Go(func() {
				inTransaction := func() error {
					tx, err := db.BeginTx(t.Context(), nil)
					if err != nil {
						return err
					}
					_, err = saveIn(tx, fmt.Sprint(i))
					return errors.Join(err, tx.Commit())
				}
				err := inTransaction()
				for d.Kind.Cluster() && err != nil && t.Context().Err() == nil {
					err = inTransaction() // members do not wait for each other: one of two is refused as it commits
				}
				if err != nil {
					t.Errorf("transaction %d: %v", i, err)
				}
			})
		}
		group.Wait()
		if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || task.Version != 2+many {
			t.Errorf("after %d transactions: %+v, %v", many, task, err)
		}

		execute(t, db, "UPDATE delay_task_message SET status = 3, version = version + 1") // as a claim does
		busy := begin(t, db)
		got, err := saveIn(busy, "late")
		if named, _ := errors.AsType[*delaytask.NotPendingError](err); got != id || named == nil || named.ID != id {
			t.Errorf("while it is executing: %d, %v", got, err)
		}
		commit(t, busy)
		execute(t, db, "UPDATE delay_task_message SET status = 1, version = version + 1")
		free := begin(t, db)
		fresh, err := saveIn(free, "new")
		servertest.OK(t, errors.Join(err, free.Commit()))
		task, err = s.Get(t.Context(), delaytask.ID(fresh))
		if fresh == id || err != nil || string(task.Body) != "new" {
			t.Errorf("after its end: %d, %+v, %v", fresh, task, err)
		}
	})
}

// Another save has changed the task since the first one, which a transaction repeats under its id. It began to read
// before the task was there.
func TestTransactionRepeatsASaveWhoseTaskWasRescheduledSince(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		early := readsBefore(t, d, db)
		key, replace := delaytask.WithKey("k"), delaytask.WithOnConflict(delaytask.ReplaceTimeAndBody)
		id := delaytask.NewID()
		_, err := s.SaveDelayTask(t.Context(), "t", "first", time.Hour, key, replace, delaytask.WithID(id))
		servertest.OK(t, err)
		_, err = s.SaveDelayTask(t.Context(), "t", "since", 2*time.Hour, key, replace)
		servertest.OK(t, err)
		repeat := func(tx *sql.Tx, body string) {
			t.Helper()
			got, err := s.SaveDelayTaskTx(t.Context(), tx, "t", body, time.Hour, key, replace, delaytask.WithID(id))
			if err = errors.Join(err, tx.Commit()); got != id || err != nil {
				t.Errorf("%s: %d, %v, want %d", body, got, err, id)
			}
			if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || string(task.Body) != body {
				t.Errorf("%s: the task is %+v, %v", body, task, err)
			}
		}
		if early != nil {
			repeat(early, "in the early transaction")
		}
		repeat(begin(t, db), "in a late one")
	})
}
