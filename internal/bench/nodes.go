package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/nodebench"
)

const (
	fleetSize  = 3
	fleetLimit = time.Minute // for processes to be there, on a machine that does other things
)

// nodeChild is one of several processes.
func nodeChild(ctx context.Context, o order, t *child.Narrator) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return nodebench.Serve(ctx, o.DSN, o.Tag, log, t)
}

// withFleet starts n processes that serve the tag, and calls f when they are ready. It kills what f does not stop.
func (r *run) withFleet(
	ctx context.Context, d *database, tag string, n int, f func(context.Context, *nodebench.Fleet) error,
) error {
	fleet := nodebench.NewFleet(fleetLimit, func(ctx context.Context) (*child.Process[nodebench.Event], error) {
		return startChild[nodebench.Event](ctx, r, order{Role: "node", DSN: d.dsn, Tag: tag})
	})
	defer fleet.Kill()
	if err := fleet.Start(ctx, n); err != nil {
		return err
	}
	return f(ctx, fleet)
}

// addShares adds how evenly the processes shared the work, and how many claims were wasted.
func (f *figures) addShares(key string, fleet *nodebench.Fleet) {
	ran, claims := fleet.Counts()
	f.add(key+".spread_pct", nodebench.Spread(ran))
	f.add(key+".wasted_pct", nodebench.Wasted(claims))
}

// ranBy returns when the fleet has begun so many tasks, or when the time is up; the judge reports what is missing.
func ranBy(ctx context.Context, fleet *nodebench.Fleet, want int, limit time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, errTimeIsUp)
	defer cancel()
	if err := fleet.Ran(waiting, want); !errors.Is(err, errTimeIsUp) {
		return err
	}
	return nil
}

var errTimeIsUp = errors.New("the time is up")

const punctualRate = 2000

// nodesPunctual measures tasks that become due at a rate, saved by this process for three others.
var nodesPunctual = measurement{
	name: "nodes.punctual", apart: true, once: true,
	figures: []figure{
		{"nodes.punctual.p50_ms", fmt.Sprintf("start behind the due time at %d tasks a second in %d processes",
			punctualRate, fleetSize)},
		{"nodes.punctual.p99_ms", "99 of 100 tasks are at most so late"},
		{"nodes.punctual.max_ms", "all"},
		{"nodes.punctual.early", "tasks that started before they were due"},
		{"nodes.punctual.lost", "tasks that did not start, or not complete"},
		{"nodes.punctual.duplicates", "starts beyond the first of a task"},
		{"nodes.punctual.spread_pct", "by which a process is off its even share of the tasks, at the worst"},
		{"nodes.punctual.wasted_pct", "of the rows that the processes tried to claim they did not win"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.ahead() + w.late + 4*time.Second },
	measure: onSameClock(func(ctx context.Context, r *run, d *database) error {
		return r.withFleet(ctx, d, latenessTag, fleetSize, func(ctx context.Context, fleet *nodebench.Fleet) error {
			return r.punctual(ctx, d, fleet)
		})
	}),
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
