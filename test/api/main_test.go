// Package api tests what programs see: the library, the client of a service, and receivers. Tests of what both forms of
// a scheduler have run with each of them.
package api

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

var silent = slog.New(slog.DiscardHandler)

// form is a scheduler in one of the two forms. another returns a scheduler of another process on the same tasks.
type form struct {
	processor.Scheduler
	another func() processor.Scheduler
}

// both runs a test with the library and with the client of a service: a program cannot tell them apart.
func both(t *testing.T, f func(t *testing.T, s form)) {
	t.Helper()
	t.Parallel()
	t.Run("library", func(t *testing.T) {
		t.Parallel()
		d := dbtest.New(t, dbtest.SQLite)
		f(t, form{open(t, d), func() processor.Scheduler { return open(t, d) }})
	})
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		url := serve(t)
		f(t, form{dial(t, url), func() processor.Scheduler { return dial(t, url) }})
	})
}

// embedded is the library on a SQLite file of its own.
func embedded(t *testing.T, change ...func(*scheduler.Config)) (*scheduler.Scheduler, dbtest.Database) {
	t.Helper()
	d := dbtest.New(t, dbtest.SQLite)
	return open(t, d, change...), d
}

func open(t *testing.T, d dbtest.Database, change ...func(*scheduler.Config)) *scheduler.Scheduler {
	t.Helper()
	cfg := scheduler.Config{NodeName: "blue"}
	for _, c := range change {
		c(&cfg)
	}
	return servertest.Open(t, d.DSN, cfg)
}

// serve runs a whole service, and returns its address.
func serve(t *testing.T) (url string) {
	t.Helper()
	return serveOn(t, dbtest.New(t, dbtest.SQLite))
}

func serveOn(t *testing.T, d dbtest.Database) (url string) {
	t.Helper()
	cfg := config.Default()
	cfg.DSN, cfg.Migrate, cfg.Node.Name = d.DSN, true, "blue"
	cfg.Server.Listen, cfg.Secret = "127.0.0.1:0", "a secret of this test, long enough"
	s, err := server.Open(t.Context(), cfg, silent)
	servertest.OK(t, err)
	servertest.Run(t, s)
	return s.URL()
}

// dial returns a client, which is stopped before the service is.
func dial(t *testing.T, url string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, append([]client.Option{client.WithLogger(silent)}, opts...)...)
	servertest.OK(t, err)
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, s interface {
	Stop(ctx context.Context) error
}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended before its cleanup
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// begin returns a transaction of an application. Without a commit it is rolled back when the test ends.
func begin(t *testing.T, d dbtest.Database) *sql.Tx {
	t.Helper()
	tx, err := servertest.SQL(t, d.DSN).BeginTx(t.Context(), nil)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// worker runs processors: a scheduler, or a receiver.
type worker interface {
	Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error
	Start(ctx context.Context) error
}

func start(t *testing.T, w worker, tag string, p processor.Func, opts ...processor.RegisterOption) {
	t.Helper()
	servertest.OK(t, w.Register(tag, p, opts...))
	servertest.OK(t, w.Start(t.Context()))
}

func nothing(context.Context, *delaytask.Task) error { return nil }

func save(t *testing.T, s processor.Scheduler, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := s.SaveDelayTask(t.Context(), tag, 1, delay, opts...)
	servertest.OK(t, err)
	return id
}

func get(t *testing.T, s processor.Scheduler, id int64) delaytask.TaskRow {
	t.Helper()
	task, err := s.Get(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	return task
}

// total counts all tasks, however many there are.
func total(t *testing.T, s processor.Scheduler) (n int64) {
	t.Helper()
	stats, err := s.Stats(t.Context())
	servertest.OK(t, err)
	for _, tag := range stats {
		for _, count := range tag.Counts {
			n += count
		}
	}
	return n
}

// settled waits until the task is in a final status.
func settled(t *testing.T, s processor.Scheduler, id int64) (task delaytask.TaskRow) {
	t.Helper()
	servertest.Eventually(t, "the task is settled", func() bool {
		task = get(t, s, id)
		return task.Status.Final()
	})
	return task
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	return servertest.Receive(t, c, "a processor says something")
}

// wantError requires an error that Is another one, or none.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}
