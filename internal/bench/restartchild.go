package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

// restartEvent is told twice: when the process is ready, and at the end.
type restartEvent struct {
	Ready   bool            `json:"ready"`
	Probes  []time.Duration `json:"probes"`  // how late tasks were
	Late    bool            `json:"late"`    // tasks were late until the end
	OnTime  time.Duration   `json:"on_time"` // from the start of the process until tasks start on time
	Drained time.Duration   `json:"drained"` // from Start until the last task of the backlog has started
}

// restartChild serves tasks. With a backlog to catch up it watches how late the others are meanwhile.
func restartChild(ctx context.Context, o order, t *child.Teller) error {
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
func dueBetween(tasks []delaytask.Task, from, until time.Time) []delaytask.Task {
	due := slices.DeleteFunc(slices.Clone(tasks), func(task delaytask.Task) bool {
		return task.Expected.Before(from) || task.Expected.After(until)
	})
	slices.SortFunc(due, func(a, b delaytask.Task) int { return a.Expected.Compare(b.Expected) })
	return due
}

// onTimeFrom returns the due time of the first of the tasks from which on none was late, and false when the last one was.
func onTimeFrom(tasks []delaytask.Task, starts *lateness.Starts) (from time.Time, onTime bool) {
	for _, task := range slices.Backward(tasks) {
		at, started := starts.First(task.ID)
		if !started || at.Sub(task.Expected) >= probeOnTime {
			break
		}
		from, onTime = task.Expected, true
	}
	return from, onTime
}
