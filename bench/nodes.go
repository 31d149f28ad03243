package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/scheduler"
)

const fleetSize = 3

// withFleet starts n processes that serve the tag, and calls f when they are ready. It kills what f does not stop.
func withFleet(
	ctx context.Context, d *bench.Database, tag string, n int, f func(context.Context, *fleet) error,
) error {
	nodes := &fleet{start: func(ctx context.Context) (*node, error) {
		return startChild[nodeEvent](ctx, order{Role: "node", DSN: d.DSN, Tag: tag})
	}}
	defer nodes.kill()
	if err := nodes.add(ctx, n); err != nil {
		return err
	}
	return f(ctx, nodes)
}

// addShares adds how evenly the processes shared the work, and how many claims were wasted.
func addShares(r *bench.Runner, key string, nodes *fleet) {
	r.Add(key+".spread_pct", nodes.spread())
	r.Add(key+".wasted_pct", nodes.wasted())
}

const punctualRate = 2000

// nodesPunctual measures tasks that become due at a rate, saved by this process for three others.
var nodesPunctual = bench.Measurement{
	Name: "nodes.punctual", Apart: true, Turns: 1,
	Figures: append(lateFigures("nodes.punctual",
		fmt.Sprintf("start behind the due time at %d tasks a second in %d processes", punctualRate, fleetSize)),
		bench.Figure{"nodes.punctual.spread_pct", aboutSpread},
		bench.Figure{"nodes.punctual.wasted_pct", aboutWasted}),
	Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		return withFleet(ctx, d, bench.LateTag, fleetSize, func(ctx context.Context, nodes *fleet) error {
			return punctual(ctx, r, d, nodes)
		})
	}),
}

const (
	aboutSpread = "by which a process is off its even share of the tasks, at the worst"
	aboutBurned = "attempts beyond the first of a task, and leases that a process lost"
	aboutWasted = "of the rows that the processes tried to claim they did not win"
)

func punctual(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	if err := nodes.serve(ctx); err != nil {
		return err
	}
	span := r.Lasting(bench.LateSpan)
	n := max(1, int(punctualRate*span.Seconds()))
	err := d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		begin, err := bench.SaveAhead(ctx, n, span, r.Ahead(), bench.SaverOf(s, bench.LateTag, bench.Body))
		if err != nil {
			return err
		}
		return nodes.ran(ctx, n, time.Until(begin)+span+bench.RunLimit)
	})
	if err := errors.Join(err, nodes.stop(fleetSize)); err != nil {
		return err
	}
	addShares(r, "nodes.punctual", nodes)
	return judge(ctx, r, d, bench.LateTag, "nodes.punctual", nodes.starts(n))
}
