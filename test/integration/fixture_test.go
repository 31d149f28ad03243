//go:build unix

// Package integration tests what only real databases and real processes can show, through the API that users have.
package integration

import (
	"context"
	"database/sql"
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

// patience is how long a test waits for what must happen in the end, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// each runs f on each kind of database, in parallel. On a cluster every connection is to another member.
func each(t *testing.T, f func(t *testing.T, d dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		probe(t, d)
		f(t, d.Spread())
	})
}

// servers is [each] without SQLite, which knows no row locks, no sessions and no users.
func servers(t *testing.T, f func(t *testing.T, d dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		probe(t, d)
		f(t, d)
	})
}

// config has short intervals.
func config(t *testing.T, change ...func(*scheduler.Config)) scheduler.Config {
	cfg := scheduler.Config{
		Migrate: true,
		Backoff: processor.Constant(0),
		TTR:     time.Minute, // a lease must not end because the machine stalls
		Logger:  slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// open returns a scheduler on connections of its own. It is stopped when the test ends.
func open(t *testing.T, d dbtest.Database, change ...func(*scheduler.Config)) *scheduler.Scheduler {
	t.Helper()
	s, err := scheduler.Open(t.Context(), d.DSN, config(t, change...))
	servertest.OK(t, err)
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil { // the test's context has ended before its cleanup
			t.Logf("stop: %v", err)
		}
	})
	return s
}

// serve registers the processor and starts the scheduler.
func serve(t *testing.T, s *scheduler.Scheduler, tag string, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	servertest.OK(t, s.Register(tag, p, opts...))
	servertest.OK(t, s.Start(t.Context()))
}

// armed is the largest lateness of a task that its timer found: polls find it 100 ms after it was due, or later.
const armed = 90 * time.Millisecond

// warm waits until the scheduler arms its own saves, which begins with its first reading of the nodes. Tasks that are
// saved before are found a little later.
func warm(t *testing.T, s *scheduler.Scheduler, tag string) {
	t.Helper()
	servertest.Eventually(t, "tasks are armed as they are saved", func() bool {
		task := reaches(t, s, save(t, s, tag, 50*time.Millisecond), delaytask.Completed)
		return task.Lateness() < armed
	})
}

func save(t *testing.T, s *scheduler.Scheduler, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := s.SaveDelayTask(t.Context(), tag, "body", delay, opts...)
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	return id
}

func get(t *testing.T, s *scheduler.Scheduler, id int64) delaytask.TaskRow {
	t.Helper()
	task, err := s.Get(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	return task
}

// reaches waits until the task has the status.
func reaches(t *testing.T, s *scheduler.Scheduler, id int64, want delaytask.Status) delaytask.TaskRow {
	t.Helper()
	var task delaytask.TaskRow
	servertest.Eventually(t, "task is "+string(want), func() bool {
		task = get(t, s, id)
		return task.Status == want
	})
	return task
}

// pool opens the database as an application would. On MySQL the parameters are added to the DSN.
func pool(t *testing.T, d dbtest.Database, params ...string) *sql.DB {
	t.Helper()
	driver, dsn := "mysql", d.DSN
	if path, ok := strings.CutPrefix(d.DSN, "sqlite:"); ok {
		driver, dsn = "sqlite", path+"?_pragma=busy_timeout(10000)&_txlock=immediate"
	} else if len(params) > 0 {
		dsn, _, _ = strings.Cut(dsn, "?")
		dsn += "?" + strings.Join(params, "&")
	}
	db, err := sql.Open(driver, dsn)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// mysqlConfig is the database's DSN in parts.
func mysqlConfig(t *testing.T, d dbtest.Database) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(d.DSN)
	servertest.OK(t, err)
	return cfg
}

// begin returns a transaction. Without a commit it is rolled back when the test ends.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func execute(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

const allRows = "SELECT COUNT(*) FROM delay_task_message"

func number(t *testing.T, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any,
) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// columns reads a row as the database's own client shows it.
func columns(t *testing.T, db *sql.DB, id int64) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM delay_task_message WHERE id = ?", id)
	servertest.OK(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	servertest.OK(t, err)
	values, places := make([]sql.RawBytes, len(names)), make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	if !rows.Next() {
		t.Fatalf("task %d is not stored: %v", id, rows.Err())
	}
	servertest.OK(t, rows.Scan(places...))
	found := make(map[string]string, len(names))
	for i, name := range names {
		found[name] = "NULL"
		if values[i] != nil {
			found[name] = string(values[i])
		}
	}
	return found
}

func nothing(context.Context, *delaytask.Task) error { return nil }

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		os.Exit(beChild(dsn))
	}
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // tests kill connections
		panic(err)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(watched{dbtest.WithServers(m)})
}
