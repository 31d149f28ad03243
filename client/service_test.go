package client_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/httpapi"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

// service is the API over a SQLite file.
type service struct {
	scheduler *delaytask.Scheduler
	server    *httptest.Server
}

func serve(t *testing.T, change ...func(*delaytask.Config)) *service {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cfg := delaytask.Config{Logger: log}
	for _, c := range change {
		c(&cfg)
	}
	scheduler, err := delaytask.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopping, stop := context.WithCancel(context.Background())
	api, err := httpapi.New(httpapi.Config{
		Scheduler: scheduler, Log: log, BodyLimit: 1 << 20, Stopping: stopping, Requests: requests{}, Workers: nobody{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &service{scheduler, httptest.NewServer(api)}
	t.Cleanup(func() {
		stop()
		s.server.Close()
		if err := scheduler.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client returns one that is stopped before the service is.
func (s *service) client(t *testing.T, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(s.server.URL, append([]client.Option{client.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

// requests are those of a server that nobody sends idempotency keys to.
type requests struct{}

func (requests) ReserveRequest(_ context.Context, r row.Request) (row.Request, bool, error) {
	return r, true, nil
}
func (requests) SaveRequest(context.Context, [32]byte, int64, bool) error { return nil }

// nobody is called back.
type nobody struct{}

func (nobody) Register(context.Context, *wire.Register) (w wire.Worker, err error)          { return }
func (nobody) List(context.Context) ([]wire.Worker, error)                                  { return nil, nil }
func (nobody) Get(context.Context, int64) (w wire.Worker, err error)                        { return }
func (nobody) Known(context.Context, string, string) (w wire.Worker, known bool, err error) { return }
func (nobody) Heartbeat(context.Context, int64) (w wire.Worker, err error)                  { return }
func (nobody) Remove(context.Context, int64) error                                          { return nil }
func (nobody) Explain(context.Context, *delaytask.Task) (e delaytask.Explanation, err error) {
	return
}
