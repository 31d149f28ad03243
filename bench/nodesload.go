package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/row"
)

// load gives a fleet as much as it can do.
type load struct {
	name  string
	about string
	// begin calls release, and returns from when on the n tasks can run.
	begin func(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet, n int) (time.Time, error)
}

// nodesDrain is a backlog for processes that do not know each other at first, so that each claims all tasks.
var nodesDrain = load{
	name: "nodes.drain", about: "overdue tasks from a common start of processes until the last is completed, here %d",
	begin: func(ctx context.Context, _ *bench.Runner, d *bench.Database, nodes *fleet, n int) (time.Time, error) {
		if _, err := d.Fill(ctx, n, bench.Filling{From: time.Now()}); err != nil {
			return time.Time{}, err
		}
		return time.Now(), nodes.release()
	},
}

// nodesFlood is a backlog for processes that have divided the tasks among themselves before these are due.
var nodesFlood = load{
	name:  "nodes.flood",
	about: "tasks that fall due at one moment until the last is completed, by running processes, here %d",
	begin: func(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet, n int) (time.Time, error) {
		if err := nodes.serve(ctx); err != nil {
			return time.Time{}, err
		}
		return fillAhead(ctx, r, d, n, bench.Filling{})
	},
}

// by measures the load on so many processes.
func (l load) by(n int) bench.Measurement {
	key := fmt.Sprintf("%s_per_s.%d", l.name, n)
	m := bench.Measurement{
		Name: fmt.Sprintf("%s.%d", l.name, n), Apart: true, Turns: 5,
		Figures: []bench.Figure{{key, fmt.Sprintf(l.about, n)}},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			return withFleet(ctx, d, bench.Tag, n, func(ctx context.Context, nodes *fleet) error {
				return l.run(ctx, r, d, nodes, key)
			})
		}),
	}
	if n > 1 {
		m.Figures = append(m.Figures,
			bench.Figure{l.name + "_ratio", "that in terms of what 1 process completes"},
			bench.Figure{l.name + ".spread_pct", aboutSpread},
			bench.Figure{l.name + ".wasted_pct", aboutWasted})
		m.Derive = func(r *bench.Runner) { r.AddRatio(l.name+"_ratio", key, l.name+"_per_s.1") }
	}
	return m
}

func (l load) run(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet, key string) error {
	n := r.Count(bench.Tasks)
	took, err := l.took(ctx, r, d, nodes, n)
	if err != nil {
		return err
	}
	r.Add(key, float64(n)/took.Seconds())
	processes := len(nodes.all)
	if err := nodes.stop(processes); err != nil {
		return err
	}
	if processes > 1 {
		addShares(r, l.name, nodes)
	}
	return nil
}

// took is how long the processes take for n tasks, the first that they run.
func (l load) took(
	ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet, n int,
) (time.Duration, error) {
	began, err := l.begin(ctx, r, d, nodes, n)
	if err != nil {
		return 0, err
	}
	err = allRan(ctx, d, nodes, n, time.Until(began))
	return time.Since(began), err
}

// allRan returns when so many tasks, which is all there are, were run and are completed.
func allRan(ctx context.Context, d *bench.Database, nodes *fleet, n int, begins time.Duration) error {
	limit := bench.RunLimit + time.Duration(n)*10*time.Millisecond // more than it takes where it is worth measuring
	err := nodes.ran(ctx, n, begins+limit)
	return errors.Join(err, awaitNone(ctx, d, "status IN (?, ?)", row.Pending, row.Executing))
}

// fillAhead inserts n tasks that fall due apart from each other, and returns when the first does.
func fillAhead(
	ctx context.Context, r *bench.Runner, d *bench.Database, n int, f bench.Filling,
) (due time.Time, err error) {
	// Twice as long as it should take: rows that came after their due time would be a backlog.
	f.From = time.Now().Add(time.Duration(n)*40*time.Microsecond + r.Ahead())
	if _, err := d.Fill(ctx, n, f); err != nil {
		return due, err
	}
	if late := time.Since(f.From); late > 0 {
		return due, fmt.Errorf("the tasks were not there before they were due, but %v later; is the machine "+
			"busy?", late)
	}
	return f.From, nil
}
