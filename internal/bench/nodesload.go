package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench/nodebench"
	"github.com/delaytask/delaytask/internal/row"
)

// load gives a fleet as much as it can do.
type load struct {
	name  string
	about string
	takes func(w workload) time.Duration // beside the work itself
	// begin calls Go, and returns from when on the tasks can run.
	begin func(ctx context.Context, r *run, d *database, fleet *nodebench.Fleet) (time.Time, error)
}

// nodesDrain is a backlog for processes that do not know each other at first, so that each claims all tasks.
var nodesDrain = load{
	name: "nodes.drain", about: "overdue tasks from a common start of processes until the last is completed, here %d",
	takes: func(workload) time.Duration { return time.Second },
	begin: func(ctx context.Context, r *run, d *database, fleet *nodebench.Fleet) (time.Time, error) {
		if err := r.fill(ctx, d, dueNow()); err != nil {
			return time.Time{}, err
		}
		return time.Now(), fleet.Go()
	},
}

// nodesFlood is a backlog for processes that have divided the tasks among themselves before these are due.
var nodesFlood = load{
	name:  "nodes.flood",
	about: "tasks that fall due at one moment until the last is completed, by running processes, here %d",
	takes: func(w workload) time.Duration { return filledIn(w.drain) + w.ahead() },
	begin: func(ctx context.Context, r *run, d *database, fleet *nodebench.Fleet) (time.Time, error) {
		if err := fleet.Serve(ctx); err != nil {
			return time.Time{}, err
		}
		// Twice as long as it should take: rows that came after their due time would be a backlog.
		due := time.Now().Add(2*filledIn(r.workload.drain) + r.workload.ahead())
		if err := r.fill(ctx, d, dueFrom(due)); err != nil {
			return time.Time{}, err
		}
		if late := time.Since(due); late > 0 {
			return time.Time{}, fmt.Errorf("the tasks were not there before they were due, but %v later; is the "+
				"machine busy?", late)
		}
		return due, nil
	},
}

func (r *run) fill(ctx context.Context, d *database, due func(int) row.Time) error {
	_, err := d.fill(ctx, r.workload.drain, filling{status: row.Pending, due: due})
	return err
}

// by measures the load on so many processes.
func (l load) by(n int) measurement {
	key := fmt.Sprintf("%s_per_s.%d", l.name, n)
	m := measurement{
		name: fmt.Sprintf("%s.%d", l.name, n), apart: true,
		figures: []figure{{key, fmt.Sprintf(l.about, n)}},
		takes: func(w workload) time.Duration {
			return onFreshTakes + filledIn(w.drain) + time.Duration(w.drain)*80*time.Microsecond + l.takes(w)
		},
		measure: func(ctx context.Context, r *run) error {
			return r.onFresh(ctx, func(ctx context.Context, d *database) error { return l.run(ctx, r, d, key, n) })
		},
	}
	if n > 1 {
		m.figures = append(m.figures,
			figure{l.name + "_ratio", "that in terms of what 1 process completes"},
			figure{l.name + ".spread_pct", "by which a process is off its even share of the tasks, at the worst"},
			figure{l.name + ".wasted_pct", "of the rows that the processes tried to claim they did not win"})
		m.derive = func(f *figures) { f.ratio(l.name+"_ratio", key, l.name+"_per_s.1") }
	}
	return m
}

func (l load) run(ctx context.Context, r *run, d *database, key string, n int) error {
	tasks := r.workload.drain
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return r.withFleet(ctx, d, benchTag, n, func(ctx context.Context, fleet *nodebench.Fleet) error {
		began, err := l.begin(ctx, r, d, fleet)
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeoutCause(ctx, fleetLimit+time.Duration(tasks)*drainSlowest,
			fmt.Errorf("%d processes have not run %d tasks in time", n, tasks))
		defer cancel()
		if err := fleet.Ran(limited, tasks); err != nil {
			return err
		}
		if err := await(ctx, tasks, func() (int, error) { return countCompleted(ctx, pool) }); err != nil {
			return err
		}
		r.figures.add(key, float64(tasks)/time.Since(began).Seconds())
		if err := fleet.StopOldest(n); err != nil {
			return err
		}
		if n > 1 {
			r.figures.addShares(l.name, fleet)
		}
		return nil
	})
}

// drainSlowest is more than a task takes on any machine that is worth measuring.
const drainSlowest = 10 * time.Millisecond
