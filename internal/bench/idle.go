package bench

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

var idle = measurement{
	name: "memory.idle", quick: true, once: true,
	figures: []figure{
		{"memory.idle_mb", "resident memory of a process that serves a million tasks of tomorrow"},
		{"memory.idle_peak_mb", "the most it held since it started"},
		{"cpu.idle_pct", "of one core, that this process uses meanwhile"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + filledIn(w.million()) + w.idle },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
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
		})
	},
}

var memoryTimers = measurement{
	name: "memory.timers", once: true,
	figures: []figure{
		{"memory.timers_mb", "resident memory of a process that has saved and armed a million tasks of the next hour"},
		{"memory.timers_peak_mb", "the most it held since it started, which was while it saved"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + filledIn(w.million()) + w.idle },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
			e, err := r.idle(ctx, d, r.workload.million())
			if err == nil {
				r.figures.add("memory.timers_mb", megabytes(e.Now))
				r.figures.add("memory.timers_peak_mb", megabytes(e.Peak))
			}
			return err
		})
	},
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// idle lets a child arm n tasks and then do nothing, at first for a rest and then for as long to be measured.
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
