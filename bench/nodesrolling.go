package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/scheduler"
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
var nodesRolling = bench.Measurement{
	Name: "nodes.rolling", Apart: true, Turns: 1,
	Figures: append(lateFigures("nodes.rolling",
		fmt.Sprintf("start behind the due time at %d a second while %d processes are restarted in turn", rollingRate,
			fleetSize)),
		bench.Figure{"nodes.rolling.attempts_burned", aboutBurned},
		bench.Figure{"nodes.rolling.wasted_pct", aboutWasted}),
	Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		return withFleet(ctx, d, bench.LateTag, fleetSize, func(ctx context.Context, nodes *fleet) error {
			return rolling(ctx, r, d, nodes)
		})
	}),
}

func rolling(ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet) error {
	var from, until time.Time // of what is judged by its lateness
	tasks, saved, err := underLoad(ctx, r, d, nodes, rollingRate, func() error {
		from = time.Now()
		err := restartInTurn(ctx, r, nodes, 1)
		until = time.Now()
		return err
	})
	if err == nil {
		addSteady(r, "nodes.rolling", tasks, saved, from, until, nodes)
	}
	return err
}

// underLoad calls f while the processes run so many tasks a second. It stops them, and returns all tasks.
func underLoad(
	ctx context.Context, r *bench.Runner, d *bench.Database, nodes *fleet, rate int, f func() error,
) (tasks []delaytask.TaskRow, n int, err error) {
	if err := nodes.serve(ctx); err != nil {
		return nil, 0, err
	}
	var saved atomic.Int64
	err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		saving, end := context.WithCancel(ctx)
		saver := make(chan error, 1)
		go func() { saver <- saveSteadily(saving, r, s, rate, &saved) }()
		err := lateness.Pass(ctx, rollingDelay+rollingSpread+r.Lasting(rollingRest))
		if err == nil {
			err = f()
		}
		end()
		if err := errors.Join(err, <-saver); err != nil {
			return err
		}
		return nodes.ran(ctx, int(saved.Load()), rollingDelay+rollingSpread+bench.RunLimit)
	})
	if err := errors.Join(err, nodes.stop(len(nodes.all)-nodes.stopped)); err != nil {
		return nil, 0, err
	}
	tasks, err = d.TasksOf(ctx, bench.LateTag)
	return tasks, int(saved.Load()), err
}

// addSteady judges the lateness of tasks that were due between two moments, and the rest of the figures of all.
func addSteady(
	r *bench.Runner, key string, tasks []delaytask.TaskRow, saved int, from, until time.Time, nodes *fleet,
) {
	starts := nodes.starts(saved)
	j := starts.Judge(tasks)
	j.Lost += saved - len(tasks)
	j.Starts = starts.Judge(dueBetween(tasks, from, until)).Starts
	r.AddJudgement(key, j)
	burned := 0
	for i := range tasks {
		burned += max(0, tasks[i].Attempt-1) + tasks[i].CrashCount
	}
	r.Add(key+".attempts_burned", float64(burned))
	r.Add(key+".wasted_pct", nodes.wasted())
}

// saveSteadily saves tasks at a rate a second until ctx ends. It finishes a save that has begun.
func saveSteadily(
	ctx context.Context, r *bench.Runner, s *scheduler.Scheduler, rate int, saved *atomic.Int64,
) error {
	chunks := max(2, r.Count(rate)/rollingChunk) // a second
	err := pace(ctx, chunks, int(rollingLimit.Seconds())*chunks, func(context.Context) error {
		items := make([]delaytask.Item, rollingChunk)
		for i := range items {
			items[i] = delaytask.Item{Tag: bench.LateTag, Body: bench.Body, Delay: rollingDelay + rand.N(rollingSpread)}
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

// restartInTurn replaces all processes, so many at a time, and waits each time until the load is even again.
func restartInTurn(ctx context.Context, r *bench.Runner, nodes *fleet, atOnce int) error {
	for left := len(nodes.all) - nodes.stopped; left > 0; left -= atOnce {
		n := min(atOnce, left)
		err := nodes.stop(n)
		if err := errors.Join(err, nodes.add(ctx, n), nodes.serve(ctx)); err != nil {
			return err
		}
		if err := lateness.Pass(ctx, r.Lasting(rollingRest)); err != nil {
			return err
		}
	}
	return nil
}
