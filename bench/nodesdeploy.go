package main

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
)

const deployAtOnce = 10 // processes

// nodesDeploy replaces as many processes as -nodes says under a steady load: first ten at a time, then all at once.
func (o *options) nodesDeploy() bench.Measurement {
	const key = "nodes.deploy"
	return bench.Measurement{
		Name: key, Apart: true, Turns: 1,
		Figures: append(lateFigures(key, fmt.Sprintf("start behind the due time at %d a second during both", o.load)),
			bench.Figure{key + ".batches.p99_ms", fmt.Sprintf("99 of 100 while %d processes are replaced, %d at a time",
				o.nodes, deployAtOnce)},
			bench.Figure{key + ".batches.max_ms", "all of these"},
			bench.Figure{key + ".at_once.p99_ms", "99 of 100 while all are stopped, and others started only then"},
			bench.Figure{key + ".at_once.max_ms", "all of these"},
			bench.Figure{key + ".attempts_burned", aboutBurned},
			bench.Figure{key + ".wasted_pct", aboutWasted}),
		Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			return withFleet(ctx, d, bench.LateTag, o.nodes, func(ctx context.Context, nodes *fleet) error {
				return o.deploy(ctx, r, d, nodes)
			})
		}),
	}
}

func (o *options) deploy(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	var moments [3]time.Time
	tasks, saved, err := underLoad(ctx, r, d, nodes, o.load, func() error {
		for i, atOnce := range []int{deployAtOnce, o.nodes} {
			moments[i] = time.Now()
			if err := restartInTurn(ctx, r, nodes, atOnce); err != nil {
				return err
			}
		}
		moments[2] = time.Now()
		return nil
	})
	if err != nil {
		return err
	}
	addSteady(r, "nodes.deploy", tasks, saved, moments[0], moments[2], nodes)
	starts := nodes.starts(saved)
	for i, phase := range []string{"batches", "at_once"} {
		j := starts.Judge(dueBetween(tasks, moments[i], moments[i+1]))
		r.AddPercentiles("nodes.deploy."+phase, j.Starts, "p99_ms", "max_ms")
	}
	return nil
}
