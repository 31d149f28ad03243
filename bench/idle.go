package main

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/testkit/usage"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func (o *options) idle() bench.Measurement {
	return bench.Measurement{
		Name: "memory.idle", Quick: true, Turns: 1,
		Figures: []bench.Figure{
			{"memory.idle_mb", "resident memory of a process that serves a million tasks of tomorrow"},
			{"memory.idle_peak_mb", "the most it held since it started"},
			{"cpu.idle_pct", "of one core, that this process uses meanwhile"},
		},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			tomorrow := bench.Filling{From: time.Now().Add(bench.FarDelay), Apart: time.Millisecond}
			if _, err := d.Fill(ctx, o.million(), tomorrow); err != nil {
				return err
			}
			e, err := idle(ctx, d, r.Lasting(time.Minute), 0)
			if err == nil {
				r.Add("memory.idle_mb", megabytes(e.Now))
				r.Add("memory.idle_peak_mb", megabytes(e.Peak))
				r.Add("cpu.idle_pct", e.percent())
			}
			return err
		}),
	}
}

func (o *options) memoryTimers() bench.Measurement {
	return bench.Measurement{
		Name: "memory.timers", Turns: 1,
		Figures: []bench.Figure{
			{"memory.timers_mb", "resident memory of a process that has saved and armed 250,000 tasks of this hour"},
			{"memory.timers_peak_mb", "the most it held since it started, which was while it saved"},
		},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			e, err := idle(ctx, d, r.Lasting(time.Minute), min(o.rows, armedMost))
			if err == nil {
				r.Add("memory.timers_mb", megabytes(e.Now))
				r.Add("memory.timers_peak_mb", megabytes(e.Peak))
			}
			return err
		}),
	}
}

const armedMost = 250_000 // which a process holds in memory

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// idle has a child arm n tasks and then do nothing. What it uses in the second half of the span is measured.
func idle(ctx context.Context, d *bench.Database, span time.Duration, n int) (idleEvent, error) {
	e, err := ask[idleEvent](ctx, order{Role: "idle", DSN: d.DSN, Count: n, Rest: span / 2, Span: span / 2})
	return e, errors.Join(err, leftOut(e.Failed))
}

type idleEvent struct {
	Now, Peak int64
	CPU, Took time.Duration
	Failed    string // why nothing could be measured here
}

// percent is the part of one core that was used.
func (e idleEvent) percent() float64 { return 100 * e.CPU.Seconds() / e.Took.Seconds() }

// idleChild holds tasks in memory that are not due, and reports the cost. Memory is what the system counts, including
// what the garbage collector has not returned.
func idleChild(ctx context.Context, o order, t *child.Narrator) error {
	return o.database().OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		nothing := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
		if err := errors.Join(s.Register(bench.Tag, nothing), s.Start(ctx), saveTimers(ctx, s, o.Count)); err != nil {
			return err
		}
		e, err := observeIdle(ctx, o)
		if errors.Is(err, errors.ErrUnsupported) {
			e.Failed, err = err.Error(), nil
		}
		if err == nil {
			t.Tell(e)
		}
		return err
	})
}

// saveTimers saves tasks that are armed at once: they are due within the horizon of an hour, and after the measurement.
func saveTimers(ctx context.Context, s *scheduler.Scheduler, n int) error {
	save, first := bench.SaverOf(s, bench.Tag, bench.Body), time.Now().Add(30*time.Minute)
	for saved := 0; saved < n; {
		moments := make([]time.Time, min(1000, n-saved))
		for i := range moments {
			moments[i] = first.Add(25 * time.Minute * time.Duration(saved+i) / time.Duration(n))
		}
		if err := save(ctx, moments); err != nil {
			return err
		}
		saved += len(moments)
	}
	return nil
}

func observeIdle(ctx context.Context, o order) (idleEvent, error) {
	if err := lateness.Pass(ctx, o.Rest); err != nil {
		return idleEvent{}, err
	}
	return using(func() error { return lateness.Pass(ctx, o.Span) })
}

// using measures what this process uses while f runs.
func using(f func() error) (e idleEvent, err error) {
	before, err := usage.CPU()
	if err != nil {
		return e, err
	}
	began := time.Now()
	if err := f(); err != nil {
		return e, err
	}
	after, err := usage.CPU()
	if err != nil {
		return e, err
	}
	e.CPU, e.Took = after-before, time.Since(began)
	e.Now, e.Peak, err = usage.Memory()
	return e, err
}
