package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
)

// serveEvent is told once the service listens.
type serveEvent struct{ URL string }

// serveChild is the service.
func serveChild(ctx context.Context, o order, t *child.Narrator) error {
	if o.Profile != "" {
		stop, err := profiled(o.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	return serve(ctx, o.DSN, func(url string) { t.Tell(serveEvent{url}) })
}

// serve runs the service with its defaults on a free port of loopback, until ctx ends.
func serve(ctx context.Context, dsn string, ready func(url string), options ...server.Option) error {
	c := config.Default()
	c.DSN, c.Server.Listen, c.Server.Auth = dsn, "127.0.0.1:0", "none"
	c.Push.Allow = []string{"127.0.0.0/8"}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	s, err := server.Open(ctx, c, log, options...)
	if err != nil {
		return err
	}
	ready(s.URL())
	return s.Run(ctx)
}

const idleClients = 1000

// served is a measurement of f, which gets a client of a service in a process of its own, on an empty database. The
// load comes from this process.
func (o *options) served(
	m bench.Measurement, f func(context.Context, *bench.Runner, *bench.Database, *client.Client) error,
) bench.Measurement {
	m.Apart = true
	m.Measure = bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) (err error) {
		p, err := startChild[serveEvent](ctx, order{Role: "serve", DSN: d.DSN, Profile: o.profile})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Stop()) }()
		var url string
		p.Listen(bench.RunLimit, func(e serveEvent) bool {
			url = e.URL
			return false
		})
		if url == "" {
			return errors.New("the service did not start")
		}
		// Each caller has a connection.
		c, err := client.New(url, client.WithConcurrency(idleClients), client.WithRetryFor(0))
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, r, d, c), c.Stop(context.WithoutCancel(ctx)))
	})
	return m
}

func (o *options) httpSave() bench.Measurement {
	return o.served(bench.Measurement{
		Name: "http.save",
		Figures: []bench.Figure{
			{"http.save.per_s", "tasks by 64 callers of POST /v1/tasks, one at a time"},
			{"http.save.p50_ms", "half of these calls took at most"},
			{"http.save.p99_ms", "99 of 100 of these calls took at most"},
		},
	}, func(ctx context.Context, r *bench.Runner, _ *bench.Database, c *client.Client) error {
		done, err := r.Warmed(ctx, bench.SaveCallers, func(ctx context.Context) (int, error) {
			_, err := c.SaveDelayTask(ctx, bench.Tag, bench.Body, bench.FarDelay)
			return 1, err
		})
		r.Add("http.save.per_s", done.PerSecond())
		r.AddPercentiles("http.save", done.Calls, "p50_ms", "p99_ms")
		return err
	})
}

const batchClients = 4

func (o *options) httpSaveBatch() bench.Measurement {
	return o.served(bench.Measurement{
		Name: "http.save_batch",
		Figures: []bench.Figure{{"http.save_batch.per_s",
			"tasks by 4 callers of POST /v1/tasks/batch, with 1,000 at a time"}},
	}, func(ctx context.Context, r *bench.Runner, _ *bench.Database, c *client.Client) error {
		moments := make([]time.Time, 1000)
		for i := range moments {
			moments[i] = time.Now().Add(bench.FarDelay)
		}
		save := bench.SaverOf(c, bench.Tag, bench.Body)
		done, err := r.Warmed(ctx, batchClients, func(ctx context.Context) (int, error) {
			return len(moments), save(ctx, moments)
		})
		r.Add("http.save_batch.per_s", done.PerSecond())
		return err
	})
}
