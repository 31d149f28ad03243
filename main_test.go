package delaytask

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/memstore"
	"github.com/delaytask/delaytask/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// fixture is a scheduler on a SQLite file of its own.
type fixture struct {
	*Scheduler
	file string
}

func open(t *testing.T, change ...func(*Config)) fixture {
	t.Helper()
	cfg := Config{Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	file := filepath.Join(t.TempDir(), "tasks.db")
	s, err := Open(t.Context(), "sqlite:"+file, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopOK(t, s) })
	return fixture{s, file}
}

// inMemory is for tests that no database makes better.
func inMemory(t *testing.T) fixture {
	t.Helper()
	cfg, err := prepare(t.Context(), Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := onStore(t.Context(), memstore.New(), cfg, func(context.Context) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopOK(t, s) })
	return fixture{s, ""}
}

// pool opens the fixture's file as an application would.
func (f fixture) pool(t *testing.T) *sql.DB {
	t.Helper()
	return pool(t, f.file)
}

func pool(t *testing.T, file string) *sql.DB {
	t.Helper()
	return poolOf(t, file+"?_pragma=busy_timeout(5000)&_txlock=immediate")
}

func poolOf(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// begin returns a transaction that is rolled back when the test ends without an end of its own.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// serve registers the processor and starts the scheduler.
func (f fixture) serve(t *testing.T, tag string, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	if err := f.Register(tag, p, opts...); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) count(t *testing.T) int {
	t.Helper()
	page, err := f.List(t.Context(), Filter{Limit: maxPage})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Tasks)
}

func (f fixture) get(t *testing.T, id int64) Task {
	t.Helper()
	task, err := f.Get(t.Context(), ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func nothing(context.Context, *processor.Task) error { return nil }
