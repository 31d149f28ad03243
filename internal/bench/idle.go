package bench

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bench/usage"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

var idle = measurement{
	name: "memory.idle", quick: true, once: true,
	figures: []figure{
		{"memory.idle_mb", "resident memory of a process that serves a million tasks of tomorrow"},
		{"memory.idle_peak_mb", "the most it held since it started"},
		{"cpu.idle_pct", "of one core, that this process uses meanwhile"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + filledIn(w.million()) + w.idle },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		if _, err := d.fill(ctx, r.workload.million(), filling{status: row.Pending, due: dueTomorrow()}); err != nil {
			return err
		}
		e, err := r.idle(ctx, d, 0)
		if err != nil {
			return err
		}
		r.figures.add("memory.idle_mb", megabytes(e.Now))
		r.figures.add("memory.idle_peak_mb", megabytes(e.Peak))
		if !r.Quick { // which has no time for so small a figure
			r.figures.add("cpu.idle_pct", 100*e.CPU.Seconds()/e.Took.Seconds())
		}
		return nil
	}),
}

var memoryTimers = measurement{
	name: "memory.timers", once: true,
	figures: []figure{
		{"memory.timers_mb", "resident memory of a process that has saved and armed a million tasks of the next hour"},
		{"memory.timers_peak_mb", "the most it held since it started, which was while it saved"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + filledIn(w.million()) + w.idle },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		e, err := r.idle(ctx, d, r.workload.million())
		if err == nil {
			r.figures.add("memory.timers_mb", megabytes(e.Now))
			r.figures.add("memory.timers_peak_mb", megabytes(e.Peak))
		}
		return err
	}),
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// idle has a child arm n tasks and then do nothing, first for a rest and then for the measured time.
func (r *run) idle(ctx context.Context, d *database, n int) (idleEvent, error) {
	p, err := startChild[idleEvent](ctx, r, order{
		Role: "idle", DSN: d.dsn, Count: n, Rest: r.workload.idle / 2, Span: r.workload.idle / 2,
	})
	if err != nil {
		return idleEvent{}, err
	}
	e, err := p.Last()
	if err == nil && e.Failed != "" {
		err = &leftOut{errors.New(e.Failed)}
	}
	return e, err
}

type idleEvent struct {
	Now    int64         `json:"now"`
	Peak   int64         `json:"peak"`
	CPU    time.Duration `json:"cpu"`
	Took   time.Duration `json:"took"`   // in which that CPU was used
	Failed string        `json:"failed"` // why nothing could be measured here
}

// idleChild holds tasks in memory that are not due, and reports the cost. Memory is what the system counts, including
// what the garbage collector has not returned.
func idleChild(ctx context.Context, o order, t *child.Narrator) error {
	cfg := delaytask.Config{}
	if o.Count > 0 {
		cfg.HeapCap = max(o.Count, leastHeapCap)
	}
	return o.onScheduler(ctx, cfg, func(s *delaytask.Scheduler) error {
		nothing := processor.Func(func(context.Context, *processor.Task) error { return nil })
		if err := errors.Join(s.Register(benchTag, nothing), s.Start(ctx), saveTimers(ctx, s, o.Count)); err != nil {
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

const (
	leastHeapCap = 1000
	timersFrom   = 30 * time.Minute // until the first is due, long after the measurement
	timersSpan   = 25 * time.Minute // in which all are due, within the horizon of an hour
)

// saveTimers saves tasks that are armed at once.
func saveTimers(ctx context.Context, s *delaytask.Scheduler, n int) error {
	items := make([]delaytask.Item, 0, savedAtOnce)
	for i := 0; i < n; i += len(items) {
		items = items[:0]
		for j := range min(savedAtOnce, n-i) {
			delay := timersFrom + timersSpan*time.Duration(i+j)/time.Duration(n)
			items = append(items, delaytask.Item{Tag: benchTag, Body: benchBody, Delay: delay})
		}
		if _, err := s.SaveDelayTasks(ctx, items); err != nil {
			return err
		}
	}
	return nil
}

func observeIdle(ctx context.Context, o order) (e idleEvent, err error) {
	if err := lateness.Pass(ctx, o.Rest); err != nil {
		return e, err
	}
	before, err := usage.CPU()
	if err != nil {
		return e, err
	}
	began := time.Now()
	if err := lateness.Pass(ctx, o.Span); err != nil {
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
