package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	crowdSettles = 5 * time.Second // after a common start
	crowdIdle    = 10 * time.Second
	crowdLoad    = 30 * time.Second
)

// nodesCrowd has as many processes as -nodes says. They start together, are idle, and run a steady load together.
func (o *options) nodesCrowd() bench.Measurement {
	const key = "nodes.crowd"
	return bench.Measurement{
		Name: key, Apart: true, Turns: 1,
		Figures: append(lateFigures(key, fmt.Sprintf("start behind the due time at %d a second in %d processes", o.load,
			o.nodes)),
			bench.Figure{key + ".connections", "of each process while all are idle"},
			bench.Figure{key + ".idle_per_s", "statements a second of all processes while they are idle"},
			bench.Figure{key + ".idle_kb_per_s", "that the server sends them meanwhile"},
			bench.Figure{key + ".idle_reads_per_s", "rows and entries of indexes that the server reads meanwhile"},
			bench.Figure{key + ".load_per_s", "statements a second under the load"},
			bench.Figure{key + ".load_reads_per_task", "rows and entries of indexes that the server reads for a task"},
			bench.Figure{key + ".load_connections", "of each process under the load"},
			bench.Figure{key + ".attempts_burned", aboutBurned},
			bench.Figure{key + ".wasted_pct", aboutWasted}),
		Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			if strings.HasPrefix(d.DSN, "sqlite:") {
				return bench.LeftOut("SQLite counts no statements")
			}
			return withFleet(ctx, d, bench.LateTag, o.nodes, func(ctx context.Context, nodes *fleet) error {
				return o.crowd(ctx, r, d, nodes)
			})
		}),
	}
}

func (o *options) crowd(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	pool, err := sql.Open("mysql", d.DSN)
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(1)
	defer func() { _ = pool.Close() }()
	err = errors.Join(nodes.serve(ctx), lateness.Pass(ctx, r.Lasting(crowdSettles)))
	if err != nil {
		return err
	}
	idle, connections, err := during(ctx, pool, r.Lasting(crowdIdle))
	if err != nil {
		return err
	}
	r.Add("nodes.crowd.connections", connections/float64(o.nodes))
	r.Add("nodes.crowd.idle_per_s", idle.statements)
	r.Add("nodes.crowd.idle_kb_per_s", idle.sent/1000)
	r.Add("nodes.crowd.idle_reads_per_s", idle.reads)
	var from, until time.Time
	tasks, saved, err := underLoad(ctx, r, d, nodes, o.load, func() error {
		from = time.Now()
		busy, connections, err := during(ctx, pool, r.Lasting(crowdLoad))
		until = time.Now()
		r.Add("nodes.crowd.load_per_s", busy.statements)
		r.Add("nodes.crowd.load_reads_per_task", busy.reads/float64(o.load))
		r.Add("nodes.crowd.load_connections", connections/float64(o.nodes))
		return err
	})
	if err == nil {
		addSteady(r, "nodes.crowd", tasks, saved, from, until, nodes)
	}
	return err
}

// during returns what a server counts in a span, and its connections in the end.
func during(ctx context.Context, pool *sql.DB, span time.Duration) (c serverCounts, connections float64, err error) {
	before, err := countsOf(ctx, pool)
	if err != nil {
		return c, 0, err
	}
	if err := lateness.Pass(ctx, span); err != nil {
		return c, 0, err
	}
	after, err := countsOf(ctx, pool)
	if err != nil {
		return c, 0, err
	}
	connections, err = connectionsOf(ctx, pool)
	return after.perSecond(before), connections, err
}
