package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true // so that no connection outlives its test
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// running is a service that runs until its test ends.
type running struct {
	servertest.Client
	service *Service
	logged  *servertest.Log
	stop    func()
}

func settings(dsn string) config.Config {
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = dsn, true, "127.0.0.1:0"
	return c
}

func sqlite(t *testing.T) config.Config { return settings(dbtest.New(t, dbtest.SQLite).DSN) }

// serve runs a service, which may be changed before.
func serve(t *testing.T, c config.Config, change ...func(*Service)) *running {
	t.Helper()
	logged := &servertest.Log{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(s)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{servertest.Client{TB: t, URL: s.URL()}, s, logged, stop}
}
