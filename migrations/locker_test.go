package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
)

func TestLockMakesTheSecondWaitForTheFirst(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, first, second := connected(t, d)
		var mine, theirs sessionLocker
		must(t, mine.SessionLock(t.Context(), first))
		must(t, mine.SessionUnlock(t.Context(), first))
		if err := theirs.SessionLock(t.Context(), second); err != nil {
			t.Fatalf("the lock was released: %v", err)
		}
		// Longer than one GET_LOCK waits.
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		if err := mine.SessionLock(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("locked while another holds the lock: %v", err)
		}
	})
}

// The migrations may run twice, so processes would succeed at once without the lock too.
func TestUpBeginsWhenTheLockOfAnotherProcessEnds(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, other, _ := connected(t, d)
		var held sessionLocker
		must(t, held.SessionLock(t.Context(), other))
		done := make(chan error, 1)
		go func() { done <- Up(t.Context(), db.DB, sqlstore.MySQL) }()
		waiting := "SELECT COUNT(*) FROM information_schema.processlist" +
			" WHERE db = DATABASE() AND state = 'User lock' AND info LIKE 'SELECT GET_LOCK%'"
		// The table of applied migrations is there by then: it is read without the lock.
		tables := "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()" +
			" AND table_name IN ('delay_task_message', 'delay_task_node', 'delay_task_tag')"
		for count(t, db, waiting) == 0 && len(done) == 0 {
		}
		if n := count(t, db, tables); n != 0 {
			t.Errorf("%d tables were made while another process held the lock", n)
		}
		must(t, held.SessionUnlock(t.Context(), other))
		must(t, <-done)
		if n := count(t, db, tables); n != 3 {
			t.Errorf("%d tables after the lock has ended, want 3", n)
		}
	})
}

func TestLeaseIsOnesAtATimeAndEndsByItself(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, conn, other := connected(t, d.Spread())
		var mine, theirs lease
		must(t, mine.take(t.Context(), conn))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := theirs.take(ctx, other); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("taken while another process owns it: %v", err)
		}
		other = reopened(t, db, other)
		must(t, theirs.release(t.Context(), other))
		if held := count(t, db, "SELECT COUNT(*) FROM delay_task_goose_lock WHERE ends > UTC_TIMESTAMP(6)"); held != 1 {
			t.Fatal("a process that does not own the lease has released it")
		}
		must(t, mine.release(t.Context(), conn))
		if err := theirs.take(t.Context(), other); err != nil {
			t.Fatalf("it was released: %v", err)
		}
		// The owner dies, and its minute passes.
		must(t, one(db.ExecContext(t.Context(), "UPDATE delay_task_goose_lock SET ends = UTC_TIMESTAMP(6)")))
		if err := mine.take(t.Context(), conn); err != nil {
			t.Fatalf("it has ended: %v", err)
		}
	})
}

// connected returns a pool and two connections of it.
func connected(t *testing.T, d dbtest.Database) (db *sqlx.DB, first, second *sql.Conn) {
	t.Helper()
	db, _, err := sqlstore.Connect(t.Context(), d.DSN)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	for _, conn := range []**sql.Conn{&first, &second} {
		if *conn, err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*conn).Close() })
	}
	return db, first, second
}

// reopened returns a connection in place of one whose context has ended: the driver closes it if that was during a
// statement.
func reopened(t *testing.T, db *sqlx.DB, conn *sql.Conn) *sql.Conn {
	t.Helper()
	_ = conn.Close()
	conn, err := db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func count(t *testing.T, db *sqlx.DB, query string) (n int) {
	t.Helper()
	must(t, db.GetContext(t.Context(), &n, query))
	return n
}

func TestMigrationsRunAgainWhenTheyCollideOnly(t *testing.T) {
	refused := func(number uint16) error { return fmt.Errorf("partial: %w", &mysql.MySQLError{Number: number}) }
	f := func(name string, want int, errs ...error) { // of one run after the other, then none
		t.Helper()
		runs := 0
		var last error
		err := again(t.Context(), func() error {
			runs++
			last = nil
			if runs <= len(errs) {
				last = errs[runs-1]
			}
			return last
		})
		if runs != want || !errors.Is(err, last) {
			t.Errorf("%s: %d runs, want %d; got %v, want %v", name, runs, want, err, last)
		}
	}
	f("no other process", 1)
	f("a table that was replaced meanwhile", 2, refused(1467))
	f("deadlock, then certification", 3, refused(1213), refused(3101))
	f("a connection that was cut", 2, mysql.ErrInvalidConn)
	f("no privilege", 1, refused(1142))
	f("no connection", 1, errors.New("connection refused"))
	f("another process each time", mostTries, slices.Repeat([]error{refused(1213)}, 9)...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[A any](_ A, err error) error { return err }

const statementsFile = "testdata/statements.sql"

// test/system/sqlcheck checks the list against other servers that are compatible with MySQL. DELAYTASK_UPDATE=1 writes
// it anew.
func TestStatementsThatMigrationsSendAreListed(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		if d.Members != nil {
			t.Skip("it sends what each of its members is sent")
		}
		cfg, err := mysql.ParseDSN(d.DSN)
		must(t, err)
		connector, err := mysql.NewConnector(cfg)
		must(t, err)
		recorder := dbtest.Record(connector)
		db := sql.OpenDB(recorder)
		defer db.Close()
		must(t, Up(t.Context(), db, sqlstore.MySQL))
		must(t, Down(t.Context(), db, sqlstore.MySQL))
		must(t, one(Status(t.Context(), db, sqlstore.MySQL)))
		conn, err := db.Conn(t.Context())
		must(t, err)
		defer conn.Close()
		var l lease
		must(t, l.take(t.Context(), conn))
		must(t, l.release(t.Context(), conn))
		trimmed := recorder.Statements()
		for i, s := range trimmed {
			trimmed[i] = strings.TrimSuffix(strings.TrimSpace(s), ";")
		}
		golden.Check(t, statementsFile, strings.Join(trimmed, ";\n")+";\n")
	})
}
