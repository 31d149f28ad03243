package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// The pool is a caller's, whose driver does not give up a connection to a read-only server by itself.
func TestLaneGoesOnOnlyWithAConnectionWhoseServerAnswered(t *testing.T) {
	type test struct {
		name   string
		last   func(context.Context, *sql.Conn) error // what the connection was used for
		reused bool
	}
	tests := []test{
		{"done", run("DO 1"), true},
		{"not understood", run("no SQL"), true},
		{"a lock was waited for in vain", answered(1205), true},
		{"a deadlock", answered(1213), true},
		{"no access to the database", answered(1044), false},
		{"no database", answered(1046), false},
		{"a privilege is missing", answered(1142), false},
		{"a password that is to be changed first", answered(1820), false},
		{"the server is read-only", answered(1290), false},
		{"the server is in read-only mode", answered(1836), false},
		{"transactions are read-only", run("SET SESSION TRANSACTION READ ONLY", "INSERT INTO written VALUES (1)"), false},
		{"the reply was cut off", func(context.Context, *sql.Conn) error { return io.ErrUnexpectedEOF }, false},
		{"given up by its caller", givenUp, false},
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		callers, err := sqlx.Open("mysql", d.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer callers.Close()
		mustExec(t, callers, "CREATE TABLE written (id INT)")
		for _, tt := range append(tests, test{"killed in the midst of a statement", killed(callers), false}) {
			t.Run(tt.name, func(t *testing.T) {
				l := newLane(callers, mysqlDialect, 1, nil)
				defer func() { _ = l.close(t.Context()) }()
				before := laneConnection(t, l)
				err := l.do(t.Context(), "test", tt.last)
				if failed := err != nil; failed != (tt.name != "done") {
					t.Errorf("it ended with %v", err)
				}
				if after := laneConnection(t, l); (after == before) != tt.reused {
					t.Errorf("after %v: connection %d, then %d; want the same: %t", err, before, after, tt.reused)
				}
			})
		}
	})
}

// laneConnection returns the server's number of the connection that the lane uses next.
func laneConnection(t *testing.T, l *lane) (id int64) {
	t.Helper()
	err := l.do(t.Context(), "test", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id)
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func run(statements ...string) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error {
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
}

// answered lets the server answer with an error of that number.
func answered(number int) func(context.Context, *sql.Conn) error {
	return run(fmt.Sprintf("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d", number))
}

func givenUp(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := conn.ExecContext(ctx, "DO 1")
	return err
}

// killed lets another connection kill this one in the midst of a statement.
func killed(others *sqlx.DB) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, conn *sql.Conn) error {
		var id int64
		if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			return err
		}
		ended := make(chan error)
		go func() { ended <- run("DO SLEEP(60)")(ctx, conn) }()
		const sleeping = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND state = 'User sleep'"
		for n := 0; n == 0; {
			_ = others.GetContext(ctx, &n, sleeping, id)
		}
		others.MustExecContext(ctx, fmt.Sprint("KILL ", id))
		return <-ended
	}
}
