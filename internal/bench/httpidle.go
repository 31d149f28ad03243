package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/bench/httpbench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

const (
	idleClients  = 1000
	idlePullWait = 30 * time.Second
)

var httpIdle = measurement{
	name: "http.idle", apart: true, once: true,
	figures: []figure{
		{"http.idle.queries_per_s", "statements of a service that nobody calls, as the server counts them"},
		{"http.idle.waiting_1.queries_per_s", "the same while one client waits in long polls and nothing is due"},
		{"http.idle.waiting_1000.queries_per_s", "the same while 1,000 clients wait"},
	},
	takes: func(w workload) time.Duration { return httpTakes + 3*(idleRest(w)+w.idle) },
	measure: served(func(ctx context.Context, r *run, d *database, c *httpbench.Client) error {
		if d.kind == sqlstore.SQLite {
			return &leftOut{errors.New("SQLite does not count statements")}
		}
		pool, err := d.connect(ctx, 1)
		if err != nil {
			return err
		}
		defer pool.Close()
		for _, step := range []struct {
			key     string
			clients int
		}{
			{"http.idle.queries_per_s", 0},
			{"http.idle.waiting_1.queries_per_s", 1},
			{"http.idle.waiting_1000.queries_per_s", idleClients},
		} {
			var perSecond float64
			err := c.Wait(ctx, latenessTag, step.clients, min(idlePullWait, r.workload.idle/2),
				func(ctx context.Context) (err error) {
					perSecond, err = queriesPerSecond(ctx, pool, idleRest(r.workload), r.workload.idle)
					return err
				})
			if err != nil {
				return err
			}
			r.figures.add(step.key, perSecond)
		}
		return nil
	}),
}

// idleRest is how long clients have to connect, and their first effects to end, before statements are counted.
func idleRest(w workload) time.Duration { return w.lasting(5 * time.Second) }

// queriesPerSecond counts all statements that the server gets, except its own.
func queriesPerSecond(ctx context.Context, pool *sqlx.DB, rest, span time.Duration) (float64, error) {
	if err := lateness.Pass(ctx, rest); err != nil {
		return 0, err
	}
	before, err := readStatus(ctx, pool, "Questions")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := lateness.Pass(ctx, span); err != nil {
		return 0, err
	}
	after, err := readStatus(ctx, pool, "Questions")
	return float64(after-before-1) / time.Since(began).Seconds(), err
}

// readStatus reads a number that the server counts.
func readStatus(ctx context.Context, pool *sqlx.DB, name string) (n int64, err error) {
	if err := pool.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&name, &n); err != nil {
		return 0, fmt.Errorf("ask the server for its count %s: %w", name, err)
	}
	return n, nil
}
