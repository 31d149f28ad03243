package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench/nodebench"
	"github.com/delaytask/delaytask/internal/row"
)

// nodesDrainBy measures what so many processes together make of a backlog.
func nodesDrainBy(n int) measurement {
	key := fmt.Sprintf("nodes.drain_per_s.%d", n)
	m := measurement{
		name: fmt.Sprintf("nodes.drain.%d", n), apart: true,
		figures: []figure{{key, fmt.Sprintf("overdue tasks from a common start of processes until the last is completed, here %d", n)}},
		takes: func(w workload) time.Duration {
			return onFreshTakes + filledIn(w.drain) + time.Duration(w.drain)*80*time.Microsecond + time.Second
		},
		measure: func(ctx context.Context, r *run) error {
			return r.onFresh(ctx, func(ctx context.Context, d *database) error { return r.drainByFleet(ctx, d, key, n) })
		},
	}
	if n > 1 {
		m.figures = append(m.figures,
			figure{"nodes.drain_ratio", "that in terms of what 1 process completes"},
			figure{"nodes.drain.spread_pct", "by which a process is off its even share of the tasks, at the worst"},
			figure{"nodes.drain.wasted_pct", "of the rows that the processes tried to claim they did not win"})
		m.derive = func(f *figures) { f.ratio("nodes.drain_ratio", key, "nodes.drain_per_s.1") }
	}
	return m
}

// drainByFleet lets n processes begin at one moment, on rows that were due before.
func (r *run) drainByFleet(ctx context.Context, d *database, key string, n int) error {
	tasks := r.workload.drain
	if _, err := d.fill(ctx, tasks, filling{status: row.Pending, due: dueNow()}); err != nil {
		return err
	}
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	return r.withFleet(ctx, d, benchTag, n, func(ctx context.Context, fleet *nodebench.Fleet) error {
		began := time.Now()
		if err := fleet.Go(); err != nil {
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
			r.figures.addShares("nodes.drain", fleet)
		}
		return nil
	})
}

// drainSlowest is more than a task takes on any machine on which it is worth while to measure.
const drainSlowest = 10 * time.Millisecond
