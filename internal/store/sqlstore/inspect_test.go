package sqlstore_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// MySQL tells that a transaction has locked tasks, and MariaDB that it has locked something.
func TestLockersAreTheTransactionsThatLockTasks(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insert(t, s, task(1, ""))
		_, err := pool.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS other (id INT PRIMARY KEY)")
		must(t, err)
		_, err = pool.ExecContext(t.Context(), "REPLACE INTO other VALUES (1)")
		must(t, err)
		begin := func(query string) (thread string, end func()) {
			tx, err := pool.BeginTx(t.Context(), nil)
			must(t, err)
			must(t, tx.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&thread))
			var id int
			must(t, tx.QueryRowContext(t.Context(), query).Scan(&id))
			return thread, func() { must(t, tx.Rollback()) }
		}
		ofTasks, endOfTasks := begin("SELECT id FROM delay_task_message WHERE id = 1 FOR UPDATE")
		ofOther, endOfOther := begin("SELECT id FROM other FOR UPDATE")
		find := func(thread string) (found sqlstore.Locker, some bool) {
			all, err := sqlstore.Inspect(s).Lockers(t.Context(), 0)
			must(t, err)
			at := slices.IndexFunc(all, func(l sqlstore.Locker) bool { return l.Thread == thread })
			if at < 0 {
				return found, false
			}
			return all[at], true
		}
		eventually := func(what string, holds func(l sqlstore.Locker, some bool) bool) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); !holds(find(ofTasks)); {
				if time.Now().After(deadline) {
					t.Fatal("not yet: " + what)
				}
				time.Sleep(200 * time.Millisecond) // the server looks anew when it was not asked for 0.1 s
			}
		}
		// Older transactions of other tests come first.
		eventually("the transaction is known to lock a task", func(l sqlstore.Locker, some bool) bool {
			return some && l.Rows > 0 && l.Tasks == (d.Kind == dbtest.MySQL || d.Kind == dbtest.Group)
		})
		if l, some := find(ofOther); some && l.Tasks {
			t.Errorf("the transaction that locks another table is %+v", l)
		}
		endOfTasks()
		endOfOther()
		eventually("the transaction is gone", func(_ sqlstore.Locker, some bool) bool { return !some })
	})
}

// MySQL shows no transaction while one runs a statement with characters of four bytes.
func TestTransactionsAreReadAfterAStatementThatHidesThem(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insert(t, s, task(1, ""))
		gate, err := pool.Conn(t.Context())
		must(t, err)
		defer gate.Close()
		run := func(query string) error {
			_, err := gate.ExecContext(t.Context(), query)
			return err
		}
		must(t, run("DO GET_LOCK('gate', 0)"))
		ended := make(chan error, 1)
		go func() {
			_, err := pool.ExecContext(t.Context(),
				"SELECT GET_LOCK('gate', 60), '\U0001F600' FROM delay_task_message WHERE id > 0 FOR UPDATE")
			ended <- err
		}()
		if d.Kind == dbtest.MySQL {
			for err = nil; err == nil && len(ended) == 0; { // until the statement runs
				time.Sleep(200 * time.Millisecond) // the server looks anew when it was not asked for 0.1 s
				_, err = pool.ExecContext(t.Context(), "SELECT trx_id FROM information_schema.INNODB_TRX")
			}
			if err == nil || !strings.Contains(err.Error(), "Error 3854") {
				t.Fatalf("while the statement runs, the server answers %v", err)
			}
		}
		must(t, run("DO RELEASE_LOCK('gate')"))
		must(t, <-ended)
		var readers sync.WaitGroup
		for range 8 { // InnoDB still shows them its last look
			readers.Go(func() {
				_, err := sqlstore.Inspect(s).Lockers(t.Context(), 0)
				_, errOldest := sqlstore.Inspect(s).OldestTransaction(t.Context())
				if err = errors.Join(err, errOldest); err != nil {
					t.Error(err)
				}
			})
			must(t, run("DO SLEEP(0.03)"))
		}
		readers.Wait()
	})
}
