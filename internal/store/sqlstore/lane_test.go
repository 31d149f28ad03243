package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
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
		{"read-only transactions", run("SET SESSION TRANSACTION READ ONLY", "INSERT INTO written VALUES (1)"), false},
		{"the reply was cut off", func(context.Context, *sql.Conn) error { return io.ErrUnexpectedEOF }, false},
		{"given up by its caller", givenUp, false},
	}
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		callers, err := sqlx.Open("mysql", d.DSN)
		must(t, err)
		defer callers.Close()
		mustExec(t, callers, "CREATE TABLE written (id INT)")
		for _, tt := range append(tests, test{"killed in the midst of a statement", killed(callers), false}) {
			t.Run(tt.name, func(t *testing.T) {
				l := newLane(newConnections(&pool{DB: callers}, mysqlDialect, inAll), saves, 1)
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
	must(t, err)
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

func TestWritesToASQLiteFileTakeTurnsInTheOrderInWhichTheyCame(t *testing.T) {
	path := "sqlite:" + filepath.Join(t.TempDir(), "turns.db")
	synctest.Test(t, func(t *testing.T) {
		db, kind, err := Connect(t.Context(), path)
		must(t, err)
		defer db.Close()
		s := New(db, kind)
		begin, end := make(chan struct{}), make(chan struct{})
		go func() {
			_ = s.lanes[chores].do(t.Context(), "test", func(context.Context, *sql.Conn) error {
				close(begin)
				<-end
				return nil
			})
		}()
		<-begin
		var came []int
		for i, u := range []use{saves, saves, saves, saves, claims, results, keyedSaves, renewals} {
			go func() {
				_ = s.lanes[u].do(t.Context(), "test", func(context.Context, *sql.Conn) error {
					came = append(came, i) // by itself, as the race detector sees
					return nil
				})
			}()
			synctest.Wait()
		}
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err = s.lanes[lockChecks].do(late, "test", func(context.Context, *sql.Conn) error { return nil })
		if row.ClassOf(err) != row.ClassNotApplied {
			t.Errorf("a write that waits too long for others ends with %v, want not applied", err)
		}
		close(end)
		synctest.Wait()
		// The three that queue in their lane let one of each other lane go before.
		if want := []int{0, 4, 5, 6, 7, 1, 2, 3}; !slices.Equal(came, want) {
			t.Errorf("they came in the order %v, want %v", came, want)
		}
	})
}

func TestReadHoldsUpNoWriteToASQLiteFile(t *testing.T) {
	db, kind, err := Connect(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "beside.db"))
	must(t, err)
	defer db.Close()
	mustExec(t, db, "CREATE TABLE written (id INTEGER)")
	mustExec(t, db, "INSERT INTO written VALUES (1), (2)")
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM written")
	must(t, err)
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := New(db, kind).lanes[saves].do(t.Context(), "test", run("INSERT INTO written VALUES (3)")); err != nil {
		t.Errorf("a write beside a read that goes on: %v", err)
	}
}

func TestAWriteIsRepeatedUntilItsOutcomeIsKnown(t *testing.T) {
	f := func(want int, classes ...row.Class) {
		t.Helper()
		calls := 0
		err := repeat(t.Context(), func() error {
			calls++
			if calls > len(classes) {
				return nil
			}
			return &row.Error{Class: classes[calls-1], Op: "write", Err: errors.New("failed")}
		})
		if known := calls > len(classes); calls != want || known != (err == nil) {
			t.Errorf("%v: %d calls, %v; want %d", classes, calls, err, want)
		}
	}
	f(1)
	f(2, row.ClassUnknown)
	f(2, row.ClassNotApplied)
	f(3, row.ClassUnknown, row.ClassDuplicate)
	f(3, row.ClassUnknown, row.ClassUnknown, row.ClassUnknown)
	f(1, row.ClassCaller)
	f(1, row.ClassLocked) // it has waited for a second by then
	f(2, row.ClassUnknown, row.ClassOperator)

	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := repeat(ctx, func() error {
		calls++
		cancel()
		return context.Canceled
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls after the context has ended, %v", calls, err)
	}
}

// Between the read of a purge and its DELETE an operator may retry the task, or the retried task may fail anew.
func TestPurgeDeletesNoTaskThatHasChangedMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := migrated(t, d)
		s := New(db, kind)
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		due := row.MinTime + 1
		must(t, s.Insert(t.Context(), nil, []row.Row{{ID: 1 << 40, Tag: "a", Expected: due, Due: due}}))
		for _, c := range []struct {
			status row.Status
			before row.Time
			want   int
		}{{row.Failed, due + 1, 0}, {row.Pending, due, 0}, {row.Pending, due + 1, 1}} {
			purge := s.own.purge(c.status, c.before, []int64{1 << 40})
			if n, err := execute(t.Context(), db, purge); n != c.want || err != nil {
				t.Errorf("a purge of %v tasks before %v deletes %d, %v; want %d", c.status, c.before, n, err, c.want)
			}
		}
	})
}

// TestWhatTravelsApartTakesConnectionsOfItsOwn leaves no connection to one side while the other writes.
func TestWhatTravelsApartTakesConnectionsOfItsOwn(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, _ := migrated(t, d)
		s := New(db, MySQL)
		defer s.Close(context.Background())
		f := func(ctx context.Context, id int64) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			save := row.Row{ID: id, Tag: "a", Expected: plannedTime, Due: plannedTime}
			ref := row.Ref{ID: id}
			must(t, s.Insert(ctx, nil, []row.Row{save}))
			save.ID, save.Key = id+1, fmt.Sprint("key", id)
			must(t, s.Insert(ctx, nil, []row.Row{save}))
			must(t, s.Adopt(ctx, []row.Ref{ref}))
			must(t, one(s.Claim(ctx, row.Claim{Rows: []row.Ref{ref}, Executor: row.Executor{Process: 9, Claim: 1}})))
			ref.Version++
			must(t, one(s.Renew(ctx, []row.Lease{{Ref: ref, TTR: time.Minute}})))
			must(t, one(s.Update(ctx, nil, []row.Change{{ID: id, Version: 1, From: row.Executing, To: row.Failed}})))
			must(t, one(s.Decide(ctx, []row.Decision{{Schedule: plainSchedule(id)}})))
		}
		take := func(u use) (back func()) {
			slots := s.lanes[u].slots
			for range cap(slots) {
				slots <- struct{}{}
			}
			return func() {
				for range cap(slots) {
					<-slots
				}
			}
		}
		back := take(apart)
		f(t.Context(), 1)
		back()
		for u := range uses {
			if u != apart {
				defer take(u)()
			}
		}
		f(store.Apart(t.Context()), 11)
	})
}
