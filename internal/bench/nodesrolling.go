package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bench/nodebench"
)

const (
	rollingRate   = 1000
	rollingChunk  = 10                      // tasks of one save
	rollingDelay  = 2500 * time.Millisecond // at least: so early that a task is armed wherever it was saved
	rollingSpread = time.Second             // beyond that
	rollingRest   = 2 * time.Second         // before, between and after the restarts
	rollingLimit  = 5 * time.Minute         // for all
)

// nodesRolling replaces three processes one after the other, under load.
var nodesRolling = measurement{
	name: "nodes.rolling", apart: true, once: true,
	figures: []figure{
		{"nodes.rolling.p50_ms",
			fmt.Sprintf("start behind the due time at %d a second while %d processes are restarted in turn",
				rollingRate, fleetSize)},
		{"nodes.rolling.p99_ms", "99 of 100 tasks are at most so late"},
		{"nodes.rolling.max_ms", "all"},
		{"nodes.rolling.early", "tasks that started before they were due"},
		{"nodes.rolling.lost", "tasks that did not start, or not complete"},
		{"nodes.rolling.duplicates", "starts beyond the first of a task"},
		{"nodes.rolling.attempts_burned", "attempts beyond the first of a task, and leases that a process lost"},
		{"nodes.rolling.wasted_pct", "of the rows that the processes tried to claim they did not win"},
	},
	takes: func(w workload) time.Duration {
		return onFreshTakes + 5*w.lasting(rollingRest) + 2*(rollingDelay+rollingSpread) + fleetSize*3*time.Second
	},
	measure: onSameClock(func(ctx context.Context, r *run, d *database) error {
		return r.withFleet(ctx, d, latenessTag, fleetSize, func(ctx context.Context, fleet *nodebench.Fleet) error {
			return r.rolling(ctx, d, fleet)
		})
	}),
}

func (r *run) rolling(ctx context.Context, d *database, fleet *nodebench.Fleet) error {
	if err := fleet.Serve(ctx); err != nil {
		return err
	}
	var saved atomic.Int64
	var from, until time.Time // of what is judged by its lateness
	err := r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		saving, end := context.WithCancel(ctx)
		saver := make(chan error, 1)
		go func() { saver <- r.saveSteadily(saving, s, &saved) }()
		err := lateness.Pass(ctx, rollingDelay+rollingSpread+r.workload.lasting(rollingRest))
		if err == nil {
			from = time.Now()
			err = r.restartInTurn(ctx, fleet)
			until = time.Now()
		}
		end()
		if err := errors.Join(err, <-saver); err != nil {
			return err
		}
		return ranBy(ctx, fleet, int(saved.Load()), rollingDelay+rollingSpread+latenessLimit)
	})
	if err != nil {
		return err
	}
	if err := fleet.StopOldest(fleetSize); err != nil {
		return err
	}
	tasks, err := r.tasks(ctx, d, latenessTag)
	if err == nil {
		r.figures.addRolling(tasks, int(saved.Load()), from, until, fleet)
	}
	return err
}

// addRolling judges the lateness of tasks that were due between two moments, and the rest of the figures of all.
func (f *figures) addRolling(tasks []delaytask.TaskRow, saved int, from, until time.Time, fleet *nodebench.Fleet) {
	const name = "nodes.rolling"
	starts := fleet.Starts(saved)
	j := lateness.Judge(tasks, starts, 0)
	j.Lost += saved - len(tasks)
	f.addJudgement(name, j, lateness.Judge(dueBetween(tasks, from, until), starts, 0).Starts)
	f.add(name+".attempts_burned", float64(burned(tasks)))
	_, claims := fleet.Counts()
	f.add(name+".wasted_pct", nodebench.Wasted(claims))
}

// burned counts attempts beyond the first of each task, and leases that its process lost.
func burned(tasks []delaytask.TaskRow) (n int) {
	for i := range tasks {
		n += max(0, tasks[i].Attempt-1) + tasks[i].CrashCount
	}
	return n
}

// saveSteadily saves tasks until ctx ends. It finishes a save that has begun.
func (r *run) saveSteadily(ctx context.Context, s *delaytask.Scheduler, saved *atomic.Int64) error {
	chunks := max(2, r.workload.count(rollingRate)/rollingChunk) // a second
	err := pace(ctx, chunks, int(rollingLimit.Seconds())*chunks, func(context.Context) error {
		items := make([]delaytask.Item, rollingChunk)
		for i := range items {
			items[i] = delaytask.Item{Tag: latenessTag, Body: benchBody, Delay: rollingDelay + rand.N(rollingSpread)}
		}
		_, err := s.SaveDelayTasks(context.WithoutCancel(ctx), items)
		if err == nil {
			saved.Add(rollingChunk)
		}
		return err
	})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

// restartInTurn replaces each process by another one, and waits until the load is even again.
func (r *run) restartInTurn(ctx context.Context, fleet *nodebench.Fleet) error {
	for range fleetSize {
		if err := fleet.StopOldest(1); err != nil {
			return err
		}
		if err := errors.Join(fleet.Start(ctx, 1), fleet.Serve(ctx)); err != nil {
			return err
		}
		if err := lateness.Pass(ctx, r.workload.lasting(rollingRest)); err != nil {
			return err
		}
	}
	return nil
}
