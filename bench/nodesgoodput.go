package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

const goodputSpan = 10 * time.Second

// offered is in percent of what the processes can do.
var offered = []int{10, 50, 100, 150, 200, 300}

// nodesGoodput offers as many processes as -nodes says ever more tasks: what they complete must not become less.
func (o *options) nodesGoodput() bench.Measurement {
	const key = "nodes.goodput"
	m := bench.Measurement{
		Name: key, Apart: true, Turns: 1,
		Figures: []bench.Figure{
			{key + ".capacity_per_s", fmt.Sprintf("tasks due at one moment that %d processes complete", o.nodes)},
			{key + ".kept_pct", "the least that is completed above the load at which it is the most, in terms of that"},
		},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			return withFleet(ctx, d, bench.Tag, o.nodes, func(ctx context.Context, nodes *fleet) error {
				return o.goodput(ctx, r, d, nodes)
			})
		}),
	}
	for _, pct := range offered {
		m.Figures = append(m.Figures, bench.Figure{fmt.Sprintf("%s.at_%d_per_s", key, pct),
			fmt.Sprintf("completed while %d %% of that capacity fall due", pct)})
	}
	return m
}

func (o *options) goodput(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	all := r.Count(bench.Tasks)
	took, err := nodesFlood.took(ctx, r, d, nodes, all) // at a common start each would claim all tasks
	if err != nil {
		return err
	}
	capacity := float64(all) / took.Seconds()
	r.Add("nodes.goodput.capacity_per_s", capacity)
	if o.capacity > 0 {
		capacity = float64(o.capacity)
	}
	peak, least := 0.0, 0.0
	for _, pct := range offered {
		rate, span := capacity*float64(pct)/100, r.Lasting(goodputSpan)
		n := max(1, int(rate*span.Seconds()))
		begins, err := fillAhead(ctx, r, d, n, bench.Filling{Apart: time.Duration(float64(time.Second) / rate)})
		if err := errors.Join(err, lateness.Pass(ctx, time.Until(begins)+span)); err != nil {
			return err
		}
		done, err := count(ctx, d, "tag = ? AND status = ? AND due_time >= ? AND due_time < ?", bench.Tag,
			row.Completed, row.At(begins).String(), row.At(begins.Add(span)).String())
		if err != nil {
			return err
		}
		perSecond := float64(done) / span.Seconds()
		r.Add(fmt.Sprintf("nodes.goodput.at_%d_per_s", pct), perSecond)
		if least = min(least, perSecond); perSecond >= peak {
			peak, least = perSecond, perSecond
		}
		all += n
		if err := allRan(ctx, d, nodes, all, 0); err != nil { // the next begins with none that waits
			return err
		}
	}
	r.Add("nodes.goodput.kept_pct", 100*least/max(1, peak))
	return nodes.stop(len(nodes.all))
}
