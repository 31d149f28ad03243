package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
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

var restart = measurement{
	name: "restart", once: true,
	figures: []figure{
		{"restart.first_on_time_ms",
			"after kill -9 beside 100,000 overdue tasks: from the new process's start until tasks are on time"},
		{"restart.lateness_p99_ms",
			"99 of 100 tasks are at most so late from its start on, until it has caught up and for 2 s more"},
		{"restart.lateness_max_ms", "all"},
		{"restart.drain_per_s", "overdue tasks that it catches up meanwhile"},
	},
	takes: func(w workload) time.Duration {
		return onFreshTakes + filledIn(w.million()+w.count(backlogTasks)) +
			w.lasting(beforeKill+leastObserved+4*time.Second)
	},
	measure: onSameClock(func(ctx context.Context, r *run, d *database) error {
		if err := r.fillForRestart(ctx, d); err != nil {
			return err
		}
		e, err := r.restart(ctx, d)
		if err != nil {
			return err
		}
		r.figures.add("restart.drain_per_s", float64(r.workload.count(backlogTasks))/e.Drained.Seconds())
		r.figures.add("restart.lateness_p99_ms", milliseconds(lateness.Percentile(e.Probes, 99)))
		r.figures.add("restart.lateness_max_ms", milliseconds(lateness.Percentile(e.Probes, 100)))
		if e.Late {
			return &leftOut{errors.New("tasks were not on time again before the end of the measurement")}
		}
		r.figures.add("restart.first_on_time_ms", milliseconds(e.OnTime))
		return nil
	}),
}

// fillForRestart makes tasks of tomorrow, a backlog, and tasks that become due all the time.
func (r *run) fillForRestart(ctx context.Context, d *database) error {
	backlog := row.At(time.Now().Add(-time.Minute))
	parts := []struct {
		n int
		filling
	}{
		{r.workload.million(), filling{status: row.Pending, due: dueTomorrow()}},
		{r.workload.count(backlogTasks), filling{
			tag: backlogTag, status: row.Pending, due: func(i int) row.Time { return backlog + row.Time(i) },
		}},
	}
	for _, part := range parts {
		if _, err := d.fill(ctx, part.n, part.filling); err != nil {
			return err
		}
	}
	probes := row.At(time.Now().Add(time.Second))
	_, err := d.fill(ctx, int(probesLast.Seconds()*probeRate), filling{
		tag: probeTag, status: row.Pending,
		due: func(i int) row.Time { return probes.Add(time.Duration(i) * time.Second / probeRate) },
	})
	return err
}

// restart kills a process that serves the tasks and starts another one at once, while this one saves tasks.
func (r *run) restart(ctx context.Context, d *database) (e restartEvent, err error) {
	err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		saving, end := context.WithCancel(ctx)
		saved := make(chan error, 1)
		go func() { saved <- saveProbes(saving, s) }()
		e, err = r.killed(ctx, d)
		end()
		return errors.Join(err, <-saved)
	})
	return e, err
}

// saveProbes saves tasks until ctx ends.
func saveProbes(ctx context.Context, s *delaytask.Scheduler) error {
	err := pace(ctx, probeRate, int(probesLast.Seconds()*probeRate), func(ctx context.Context) error {
		_, err := s.SaveDelayTask(ctx, probeTag, benchBody, probeDelay+rand.N(probeSpread))
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *run) killed(ctx context.Context, d *database) (restartEvent, error) {
	first, err := startChild[restartEvent](ctx, r, order{Role: "restart", DSN: d.dsn})
	if err != nil {
		return restartEvent{}, err
	}
	first.Listen(restartLimit, func(e restartEvent) bool { return !e.Ready })
	err = lateness.Pass(ctx, r.workload.lasting(beforeKill))
	if err := errors.Join(err, first.Kill()); err != nil {
		return restartEvent{}, err
	}
	second, err := startChild[restartEvent](ctx, r, order{
		Role: "restart", DSN: d.dsn, Count: r.workload.count(backlogTasks), Began: time.Now(),
		Span: r.workload.lasting(leastObserved), Rest: r.workload.lasting(afterBacklog),
	})
	if err != nil {
		return restartEvent{}, err
	}
	second.Listen(restartLimit, func(e restartEvent) bool { return !e.Ready })
	return second.Last()
}

// restartEvent is written twice: when the process is ready, and at the end.
type restartEvent struct {
	Ready   bool            `json:"ready"`
	Probes  []time.Duration `json:"probes"`  // how late tasks were
	Late    bool            `json:"late"`    // tasks were late until the end
	OnTime  time.Duration   `json:"on_time"` // from the start of the process until tasks start on time
	Drained time.Duration   `json:"drained"` // from Start until the last task of the backlog has started
}

// restartChild serves tasks. With a backlog it also measures how late the other tasks are meanwhile.
func restartChild(ctx context.Context, o order, t *child.Narrator) error {
	probes, backlog := lateness.NewStarts(0), lateness.NewStarts(o.Count)
	noting := func(starts *lateness.Starts) processor.Func {
		return func(_ context.Context, task *processor.Task) error {
			at := time.Now()
			starts.Add(task.ID, at)
			return nil
		}
	}
	var e restartEvent
	var until time.Time
	err := o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		err := errors.Join(s.Register(probeTag, noting(probes)), s.Register(benchTag, noting(lateness.NewStarts(0))))
		if o.Count > 0 {
			err = errors.Join(err, s.Register(backlogTag, noting(backlog)))
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
		if !backlog.Full() {
			return fmt.Errorf("%d overdue tasks have not all started within %v", o.Count, restartLimit)
		}
		e.Drained = time.Since(began)
		err = lateness.Pass(ctx, max(o.Rest, time.Until(o.Began.Add(o.Span))))
		until = time.Now().Add(-probeOnTime)
		return err
	})
	if err != nil || o.Count == 0 {
		return err
	}
	return o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		tasks, err := lateness.Tasks(ctx, s, probeTag)
		if err != nil {
			return err
		}
		tasks = dueBetween(tasks, o.Began, until)
		from, onTime := onTimeFrom(tasks, probes)
		e.Probes = lateness.Judge(tasks, probes, 0).Starts
		e.OnTime, e.Late = from.Sub(o.Began), !onTime
		t.Tell(e)
		return nil
	})
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
func onTimeFrom(tasks []delaytask.TaskRow, starts *lateness.Starts) (from time.Time, onTime bool) {
	for _, task := range slices.Backward(tasks) {
		at, started := starts.First(task.ID)
		if !started || at.Sub(task.Expected) >= probeOnTime {
			break
		}
		from, onTime = task.Expected, true
	}
	return from, onTime
}
