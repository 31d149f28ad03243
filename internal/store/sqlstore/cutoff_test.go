package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// patientLane waits for locks for as long as its connections may, unless its waits are cut off.
func patientLane(t *testing.T, db *sqlx.DB, size int) *lane {
	t.Helper()
	d := mysqlDialect
	d.session = append(slices.Clone(d.session), "SET SESSION innodb_lock_wait_timeout = 50")
	l := newLane(newConnections(&pool{DB: db}, d, inAll), saves, size)
	l.unanswered = New(db, MySQL).connections.unanswered
	t.Cleanup(func() { must(t, l.close(context.WithoutCancel(t.Context()))) })
	return l
}

// holding begins a transaction that has changed the row.
func holding(t *testing.T, db *sqlx.DB, id int) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	must(t, one(tx.ExecContext(t.Context(), "UPDATE held SET n = n + 100 WHERE id = ?", id)))
	return tx
}

func increment(id int) clause { return clause{"UPDATE held SET n = n + 1 WHERE id = ?", []any{id}} }

func heldRows(t *testing.T, d dbtest.Database, rows int) *sqlx.DB {
	t.Helper()
	db, _ := connect(t, d)
	mustExec(t, db, "CREATE TABLE held (id INT PRIMARY KEY, n INT NOT NULL)")
	for id := range rows {
		mustExec(t, db, fmt.Sprintf("INSERT INTO held VALUES (%d, 0)", id))
	}
	return db
}

func errorNumber(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

func TestAWaitForAnIdleTransactionIsCutOff(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := heldRows(t, d, 1)
		l := patientLane(t, db, 1)
		before := laneConnection(t, l)
		tx := holding(t, db, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := l.write(ctx, "test", increment(0)); !isLocked(err) || errorNumber(err) != 1317 {
			t.Errorf("the write ended with %v, want that a row is locked, by an interruption", err)
		}
		must(t, tx.Rollback())
		must(t, l.write(ctx, "test", increment(0)))
		if after := laneConnection(t, l); after != before {
			t.Errorf("connection %d, then %d: want the same", before, after)
		}
		if n := timesChanged(t, db, 0); n != 1 {
			t.Errorf("the row was changed %d times, want once", n)
		}
	})
}

func timesChanged(t *testing.T, db *sqlx.DB, id int) (n int) {
	t.Helper()
	must(t, db.GetContext(t.Context(), &n, "SELECT n FROM held WHERE id = ?", id))
	return n
}

// What the server is just doing ends soon, as a commit on a slow disk does.
func TestAWaitForARunningStatementIsNotCutOff(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := heldRows(t, d, 1)
		l := patientLane(t, db, 1)
		tx := holding(t, db, 0)
		ended := make(chan error, 1)
		go func() {
			_, err := tx.ExecContext(t.Context(), "DO SLEEP(1.5)")
			ended <- errors.Join(err, tx.Rollback())
		}()
		must(t, l.write(t.Context(), "test", increment(0)))
		must(t, <-ended)
	})
}

// The lock may be given up at the moment of the cut.
func TestAStatementThatWasCutOffIsNotApplied(t *testing.T) {
	const rows, rounds = 8, 3
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db := heldRows(t, d, rows)
		l := patientLane(t, db, rows)
		cut, applied := 0, 0
		for range rounds {
			mustExec(t, db, "UPDATE held SET n = 0")
			errs := make([]error, rows)
			var all sync.WaitGroup
			for id := range rows {
				tx := holding(t, db, id)
				all.Go(func() { errs[id] = l.write(t.Context(), "test", increment(id)) })
				all.Go(func() {
					time.Sleep(unansweredAfter + rand.N(40*time.Millisecond))
					_ = tx.Rollback()
				})
			}
			all.Wait()
			for id, err := range errs {
				want := 1
				if err != nil {
					want = 0
				}
				if n := timesChanged(t, db, id); n != want && row.ClassOf(err) != row.ClassUnknown {
					t.Errorf("the write ended with %v: the row was changed %d times", err, n)
				}
				cut, applied = cut+1-want, applied+want
			}
		}
		t.Logf("%d were cut off, %d applied", cut, applied)
	})
}
