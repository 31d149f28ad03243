package sqlstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// MySQL tells that a transaction has locked tasks, and MariaDB that it has locked something.
func TestLockersAreTheTransactionsThatLockTasks(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		insert(t, s, task(1, ""))
		_, err := pool.ExecContext(t.Context(), "CREATE TABLE other (id INT PRIMARY KEY)")
		must(t, err)
		_, err = pool.ExecContext(t.Context(), "INSERT INTO other VALUES (1)")
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
