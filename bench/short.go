package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/scheduler"
)

// How a process saves, which serves nothing as a rule, and how another one gets the tasks.
const (
	shortHere      = "here"      // by the process that runs them
	shortSaves     = ""          // plain saves
	shortTx        = "tx"        // in transactions; late is counted from the commit
	shortCommitted = "committed" // likewise, and the scheduler is told of the commit
	shortPoll      = "poll"      // wake-ups are off
	shortPop       = "pop"       // a caller pops
)

const (
	shortTag  = "bench.short"
	shortRate = 50
)

// shortDelays are taken in turns.
var shortDelays = []time.Duration{
	0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 1900 * time.Millisecond,
}

// shortLateness measures tasks with short delays.
func (o *options) shortLateness(way, about string) bench.Measurement {
	name := "lateness.short"
	if way != shortSaves {
		name += "_" + way
	}
	return bench.Measurement{
		Name: name, Turns: 1, Quick: way == shortHere || way == shortSaves,
		Figures: []bench.Figure{
			{name + ".now.p50_ms", about + ", delay 0: from the call, or the commit, to the start"},
			{name + ".now.p99_ms", "99 of 100 take at most"},
			{name + ".later.p50_ms", "with delays of 50 ms to 1.9 s: start behind the due time"},
			{name + ".later.p99_ms", "99 of 100 are at most so late"},
			{name + ".early", "tasks that started before they were due"},
		},
		Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			if d.Kind.Embedded() && (way == shortTx || way == shortCommitted) {
				return leftOut("an open transaction keeps the worker from its claims")
			}
			n := max(1, int(shortRate*r.Lasting(time.Minute).Seconds()))
			return measureShort(ctx, r, order{Role: "short", DSN: d.DSN, Rate: shortRate, Count: n, Way: way}, name)
		}),
	}
}

func measureShort(ctx context.Context, r *bench.Runner, o order, name string) error {
	o.Serving, o.Saving = true, o.Way == shortHere
	worker, err := startShort(ctx, o)
	if err != nil {
		return err
	}
	var saved, ran shortEvent
	if !o.Saving {
		o.Serving, o.Saving = false, true
		saver, err := startShort(ctx, o)
		if err == nil {
			saved, err = saver.Last()
		}
		if err != nil {
			_ = worker.Kill()
			return err
		}
	}
	if ran, err = worker.Last(); err != nil {
		return err
	}
	if saved.Saved == nil {
		saved = ran
	}
	if len(ran.Starts) < o.Count {
		return fmt.Errorf("%d of %d tasks did not start within %v", o.Count-len(ran.Starts), o.Count, bench.RunLimit)
	}
	var now, later []time.Duration
	early := 0
	for id, start := range ran.Starts {
		switch {
		case start.At.Before(start.Expected):
			early++
		case !saved.Saved[id].IsZero():
			now = append(now, start.At.Sub(saved.Saved[id]))
		default:
			later = append(later, start.At.Sub(start.Expected))
		}
	}
	r.AddPercentiles(name+".now", now, "p50_ms", "p99_ms")
	r.AddPercentiles(name+".later", later, "p50_ms", "p99_ms")
	r.Add(name+".early", float64(early))
	return nil
}

func startShort(ctx context.Context, o order) (*child.Process[shortEvent], error) {
	p, err := startChild[shortEvent](ctx, o)
	if err != nil {
		return nil, err
	}
	p.Listen(bench.RunLimit, func(e shortEvent) bool { return !e.Ready })
	return p, nil
}

// shortEvent is written twice: when the process is ready, and at the end.
type shortEvent struct {
	Ready  bool
	Saved  map[int64]time.Time // by the ids of tasks with the delay 0: when the save was called, or committed
	Starts map[int64]shortStart
}

type shortStart struct{ At, Expected time.Time }

func shortChild(ctx context.Context, o order, t *child.Narrator) error {
	cfg := scheduler.Config{}
	if o.Way == shortPoll {
		cfg.Wake = wake.Off
	}
	seen := lateness.NewStarts(o.Count)
	var saved map[int64]time.Time
	err := o.database().OnScheduler(ctx, cfg, func(s *scheduler.Scheduler) (err error) {
		if !o.Serving {
			t.Tell(shortEvent{Ready: true})
			saved, err = o.saveShort(ctx, s)
			return err
		}
		if o.Way != shortPop {
			err = s.Register(shortTag, seen)
		}
		if err := errors.Join(err, s.Start(ctx)); err != nil {
			return err
		}
		popping, stop := context.WithCancel(ctx)
		defer stop()
		var callers sync.WaitGroup
		if o.Way == shortPop {
			callers.Go(func() { popShort(popping, s, seen) })
		}
		if err := lateness.Pass(ctx, 3*time.Second); err != nil { // until the nodes know each other
			return err
		}
		t.Tell(shortEvent{Ready: true})
		if o.Saving {
			if saved, err = o.saveShort(ctx, s); err != nil {
				return err
			}
		}
		spread := time.Duration(o.Count) * time.Second / time.Duration(o.Rate)
		_ = seen.Wait(ctx, spread+bench.RunLimit) // the parent counts what has not come
		stop()
		callers.Wait()
		return nil
	})
	e := shortEvent{Saved: saved, Starts: map[int64]shortStart{}}
	if err == nil && o.Serving {
		var tasks []delaytask.TaskRow
		tasks, err = o.database().TasksOf(ctx, shortTag)
		for _, task := range tasks {
			if at, started := seen.First(task.ID); started {
				e.Starts[task.ID] = shortStart{at, task.Expected}
			}
		}
	}
	t.Tell(e)
	return err
}

// saveShort saves tasks. Of tasks without a delay it returns when the call began, or when they were committed.
func (o order) saveShort(ctx context.Context, s *scheduler.Scheduler) (saved map[int64]time.Time, err error) {
	var pool *sqlx.DB
	if o.Way == shortTx || o.Way == shortCommitted {
		if pool, _, err = sqlstore.Connect(ctx, o.DSN); err != nil {
			return nil, err
		}
		defer pool.Close()
	}
	saved = map[int64]time.Time{}
	var mu sync.Mutex
	var next atomic.Int64
	return saved, pace(ctx, o.Rate, o.Count, func(ctx context.Context) (err error) {
		delay, at := shortDelays[int(next.Add(1)-1)%len(shortDelays)], time.Now()
		var id int64
		if pool == nil {
			id, err = s.SaveDelayTask(ctx, shortTag, bench.Body, delay)
		} else {
			id, err = saveInTx(ctx, pool, s, shortTag, bench.Body, delay)
			at = time.Now()
		}
		if err != nil {
			return err
		}
		if o.Way == shortCommitted {
			s.Committed(id)
		}
		if delay == 0 {
			mu.Lock()
			defer mu.Unlock()
			saved[id] = at
		}
		return nil
	})
}

// popShort takes tasks as a caller does, one at a time by each of several.
func popShort(ctx context.Context, s *scheduler.Scheduler, seen *lateness.Starts) {
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				tasks, err := s.Pop(ctx, shortTag)
				if err != nil {
					return
				}
				for _, t := range tasks {
					_ = seen.Process(ctx, &t.Task)
					_ = t.Finish(ctx) // otherwise its lease ends, after the measurement
				}
			}
		})
	}
	callers.Wait()
}
