package servertest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/scheduler"
)

// Each runs f on each kind of database, in parallel.
func Each(t *testing.T, f func(t *testing.T, db dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		f(t, db)
	})
}

// Open returns a scheduler on a database, which is stopped when the test ends. It logs nothing unless the test says
// where to.
func Open(t testing.TB, dsn string, c scheduler.Config) *scheduler.Scheduler {
	t.Helper()
	c.Migrate = true
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := scheduler.Open(t.Context(), dsn, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Stop(t, s) })
	return s
}

// Stop stops a scheduler, for the second time too.
func Stop(t testing.TB, s *scheduler.Scheduler) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Run runs a service until the test ends, or until the caller stops it before. It must end without an error.
func Run(t testing.TB, s interface {
	Run(ctx context.Context) error
}) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		// A test may end before the service has started.
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the service ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// SQL is a database as a program without delaytask has it.
func SQL(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, _, err := sqlstore.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db.DB
}

func Exec(t testing.TB, dsn, statement string, args ...any) {
	t.Helper()
	db := SQL(t, dsn)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Listen serves an address until the test ends.
func Listen(t testing.TB, serve http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return server.URL
}

// Log keeps what is written to it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
