package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/pprof"
	"time"

	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/httpbench"
)

// serveEvent is written once the service listens.
type serveEvent struct {
	URL string `json:"url"`
}

const serveLimit = 30 * time.Second // for a service to start

// serveChild is the service.
func serveChild(ctx context.Context, o order, t *child.Narrator) (err error) {
	if o.Profile != "" {
		w, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer w.Close()
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return httpbench.Serve(ctx, o.DSN, log, func(url string) { t.Tell(serveEvent{url}) })
}

// served makes a measurement of f, which gets a client of a service in a process of its own, on an empty database. The
// load comes from this process.
func served(
	f func(context.Context, *run, *database, *httpbench.Client) error,
) func(context.Context, *run) error {
	return fresh(func(ctx context.Context, r *run, d *database) (err error) {
		p, err := startChild[serveEvent](ctx, r, order{Role: "serve", DSN: d.dsn, Profile: r.ServiceProfile})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Stop()) }()
		var url string
		p.Listen(serveLimit, func(e serveEvent) bool {
			url = e.URL
			return false
		})
		if url == "" {
			return errors.New("the service did not start")
		}
		client := httpbench.NewClient(url)
		defer client.Close()
		return f(ctx, r, d, client)
	})
}

// httpTakes is how long a service takes beside the measurement itself.
const httpTakes = onFreshTakes + time.Second
