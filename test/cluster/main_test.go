// Package cluster tests schedulers on several members of a cluster of databases, through the API that users have. It wants
// clusters of its own, which it kills: DELAYTASK_REQUIRE_DB=galera,group go test ./test/cluster
package cluster

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/processor"
)

// patience is how long a test waits for what must happen in the end: a member that was killed copies all from another one first.
const patience = 3 * time.Minute

const ttr = 5 * time.Second

func TestMain(m *testing.M) {
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // connections are killed here on purpose
		panic(err)
	}
	dbtest.Main(m)
}

// open returns a scheduler on connections of its own that serves the tag. It is stopped when the test ends.
func open(t *testing.T, dsn string, p processor.Func) *delaytask.Scheduler {
	t.Helper()
	s, err := delaytask.Open(t.Context(), dsn, delaytask.Config{
		Migrate: true, TTR: ttr, Backoff: processor.Constant(0), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Logf("stop: %v", err)
		}
	})
	if err := s.Register("t", p); err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, s *delaytask.Scheduler) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	given := time.After(patience)
	for !holds() {
		select {
		case <-given:
			t.Fatalf("after %v not yet: %s", patience, what)
		case <-poll.C:
		}
	}
}

func pool(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
