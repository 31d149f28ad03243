package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/nodebench"
)

const punctualRate = 2000

// nodesPunctual measures tasks that become due at a rate, saved by this process for three others.
var nodesPunctual = measurement{
	name: "nodes.punctual", apart: true, once: true,
	figures: []figure{
		{"nodes.punctual.p50_ms", fmt.Sprintf("start behind the due time at %d tasks a second in %d processes", punctualRate, fleetSize)},
		{"nodes.punctual.p99_ms", "99 of 100 tasks are at most so late"},
		{"nodes.punctual.max_ms", "all"},
		{"nodes.punctual.early", "tasks that started before they were due"},
		{"nodes.punctual.lost", "tasks that did not start, or not complete"},
		{"nodes.punctual.duplicates", "starts beyond the first of a task"},
		{"nodes.punctual.spread_pct", "by which a process is off its even share of the tasks, at the worst"},
		{"nodes.punctual.wasted_pct", "of the rows that the processes tried to claim they did not win"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.ahead() + w.late + 4*time.Second },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
			if err := d.sameClock(ctx); err != nil {
				return err
			}
			return r.withFleet(ctx, d, latenessTag, fleetSize, func(ctx context.Context, fleet *nodebench.Fleet) error {
				return r.punctual(ctx, d, fleet)
			})
		})
	},
}

func (r *run) punctual(ctx context.Context, d *database, fleet *nodebench.Fleet) error {
	if err := fleet.Serve(ctx); err != nil {
		return err
	}
	n, span := max(1, int(punctualRate*r.workload.late.Seconds())), r.workload.late
	err := r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		begin, err := saveAhead(ctx, n, span, r.workload.ahead(), bySchedulerAt(s))
		if err != nil {
			return err
		}
		return ranBy(ctx, fleet, n, time.Until(begin)+span+latenessLimit)
	})
	if err != nil {
		return err
	}
	if err := fleet.StopOldest(fleetSize); err != nil {
		return err
	}
	r.figures.addShares("nodes.punctual", fleet)
	_, err = r.judge(ctx, d, latenessTag, "nodes.punctual", fleet.Starts(n))
	return err
}
