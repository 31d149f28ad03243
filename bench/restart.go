package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	probeTag      = "bench.probe"
	backlogTag    = "bench.backlog" // served by the second process alone, so that all of the backlog is left for it
	backlogTasks  = 100_000
	probeRate     = 20
	probeDelay    = 2 * time.Second // so early that it is armed before it is due
	probeSpread   = 500 * time.Millisecond
	probesLast    = 3 * time.Minute // longer than anything here
	probeOnTime   = 20 * time.Millisecond
	beforeKill    = 3 * time.Second
	restartLimit  = 90 * time.Second // for the backlog
	afterBacklog  = 2 * time.Second
	leastObserved = 6 * time.Second
)

func (o *options) restart() bench.Measurement {
	return bench.Measurement{
		Name: "restart", Turns: 1,
		Figures: []bench.Figure{
			{"restart.first_on_time_ms",
				"after kill -9 beside 100,000 overdue tasks: from the new process's start until tasks are on time"},
			{"restart.lateness_p99_ms",
				"99 of 100 tasks are at most so late from its start on, until it has caught up and for 2 s more"},
			{"restart.lateness_max_ms", "all"},
			{"restart.drain_per_s", "overdue tasks that it catches up meanwhile"},
		},
		Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			backlog := r.Count(backlogTasks)
			if err := o.fillForRestart(ctx, d, backlog); err != nil {
				return err
			}
			e, err := restart(ctx, r, d, backlog)
			if err != nil {
				return err
			}
			r.Add("restart.drain_per_s", float64(backlog)/e.Drained.Seconds())
			r.Add("restart.lateness_p99_ms", bench.Milliseconds(lateness.Percentile(e.Probes, 99)))
			r.Add("restart.lateness_max_ms", bench.Milliseconds(lateness.Percentile(e.Probes, 100)))
			if e.Late {
				return leftOut("tasks were not on time again before the end of the measurement")
			}
			r.Add("restart.first_on_time_ms", bench.Milliseconds(e.OnTime))
			return nil
		}),
	}
}

// fillForRestart makes tasks of tomorrow, a backlog, and tasks that become due all the time.
func (o *options) fillForRestart(ctx context.Context, d *bench.Database, backlog int) error {
	now := time.Now()
	for _, part := range []struct {
		n int
		bench.Filling
	}{
		{o.million(), bench.Filling{From: now.Add(bench.FarDelay), Apart: time.Millisecond}},
		{backlog, bench.Filling{Tag: backlogTag, From: now.Add(-time.Minute)}},
	} {
		if _, err := d.Fill(ctx, part.n, part.Filling); err != nil {
			return err
		}
	}
	_, err := d.Fill(ctx, int(probesLast.Seconds()*probeRate), bench.Filling{
		Tag: probeTag, From: time.Now().Add(time.Second), Apart: time.Second / probeRate,
	})
	return err
}

// restart kills a process that serves the tasks and starts another one at once, while this one saves tasks.
func restart(ctx context.Context, r *bench.Runner, d *bench.Database, backlog int) (e restartEvent, err error) {
	err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		saving, end := context.WithCancel(ctx)
		saved := make(chan error, 1)
		go func() { saved <- saveProbes(saving, s) }()
		e, err = killed(ctx, r, d, backlog)
		end()
		return errors.Join(err, <-saved)
	})
	return e, err
}

// saveProbes saves tasks until ctx ends.
func saveProbes(ctx context.Context, s *scheduler.Scheduler) error {
	err := pace(ctx, probeRate, int(probesLast.Seconds()*probeRate), func(ctx context.Context) error {
		_, err := s.SaveDelayTask(ctx, probeTag, bench.Body, probeDelay+rand.N(probeSpread))
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func killed(ctx context.Context, r *bench.Runner, d *bench.Database, backlog int) (restartEvent, error) {
	first, err := startChild[restartEvent](ctx, order{Role: "restart", DSN: d.DSN})
	if err != nil {
		return restartEvent{}, err
	}
	first.Listen(restartLimit, func(e restartEvent) bool { return !e.Ready })
	err = lateness.Pass(ctx, r.Lasting(beforeKill))
	if err := errors.Join(err, first.Kill()); err != nil {
		return restartEvent{}, err
	}
	second, err := startChild[restartEvent](ctx, order{
		Role: "restart", DSN: d.DSN, Count: backlog, Began: time.Now(),
		Span: r.Lasting(leastObserved), Rest: r.Lasting(afterBacklog),
	})
	if err != nil {
		return restartEvent{}, err
	}
	second.Listen(restartLimit, func(e restartEvent) bool { return !e.Ready })
	return second.Last()
}

// restartEvent is written twice: when the process is ready, and at the end.
type restartEvent struct {
	Ready   bool
	Probes  []time.Duration // how late tasks were
	Late    bool            // tasks were late until the end
	OnTime  time.Duration   // from the start of the process until tasks start on time
	Drained time.Duration   // from Start until the last task of the backlog has started
}

// restartChild serves tasks. With a backlog it also measures how late the other tasks are meanwhile.
func restartChild(ctx context.Context, o order, t *child.Narrator) error {
	probes, backlog := lateness.NewStarts(0), lateness.NewStarts(o.Count)
	var e restartEvent
	var until time.Time
	err := o.database().OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		err := errors.Join(s.Register(probeTag, probes), s.Register(bench.Tag, lateness.NewStarts(0)))
		if o.Count > 0 {
			err = errors.Join(err, s.Register(backlogTag, backlog))
		}
		began := time.Now()
		if err := errors.Join(err, s.Start(ctx)); err != nil {
			return err
		}
		t.Tell(restartEvent{Ready: true})
		if o.Count == 0 {
			<-ctx.Done() // or to be killed
			return nil
		}
		if err := backlog.Wait(ctx, restartLimit); err != nil {
			return err
		}
		e.Drained = time.Since(began)
		err = lateness.Pass(ctx, max(o.Rest, time.Until(o.Began.Add(o.Span))))
		until = time.Now().Add(-probeOnTime)
		return err
	})
	if err != nil || o.Count == 0 {
		return err
	}
	tasks, err := o.database().TasksOf(ctx, probeTag)
	if err != nil {
		return err
	}
	tasks = dueBetween(tasks, o.Began, until)
	from, onTime := onTimeFrom(tasks, probes, probeOnTime)
	e.Probes = probes.Judge(tasks).Starts
	e.OnTime, e.Late = from.Sub(o.Began), !onTime
	t.Tell(e)
	return nil
}

// dueBetween returns the tasks that were due between two moments, in this order.
func dueBetween(tasks []delaytask.TaskRow, from, until time.Time) []delaytask.TaskRow {
	due := slices.DeleteFunc(slices.Clone(tasks), func(task delaytask.TaskRow) bool {
		return task.Expected.Before(from) || task.Expected.After(until)
	})
	slices.SortFunc(due, func(a, b delaytask.TaskRow) int { return a.Expected.Compare(b.Expected) })
	return due
}

// onTimeFrom returns the due time of the first task after which none was late, and false when the last one was.
func onTimeFrom(
	tasks []delaytask.TaskRow, starts *lateness.Starts, within time.Duration,
) (from time.Time, onTime bool) {
	for _, task := range slices.Backward(tasks) {
		at, started := starts.First(task.ID)
		if !started || at.Sub(task.Expected) >= within {
			break
		}
		from, onTime = task.Expected, true
	}
	return from, onTime
}
