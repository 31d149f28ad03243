package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	pausedTag   = "bench.paused"
	growthTurns = 3
	growthScans = 20
	growthRest  = 15 * time.Second // for the server to flush the filled table
	scanPage    = 500              // as the engine reads
)

func (o *options) growth() bench.Measurement {
	return bench.Measurement{
		Name: "growth", Turns: 1,
		Figures: []bench.Figure{
			{"growth.save_ratio", "saves a second into a table of many rows, in terms of those into an empty one"},
			{"growth.drain_ratio", "the same of tasks that are due at Start"},
			{"growth.scan_ms", "the read for overdue tasks in that table"},
		},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, large *bench.Database) error {
			if err := o.fillLarge(ctx, large); err != nil {
				return err
			}
			if err := lateness.Pass(ctx, r.Lasting(growthRest)); err != nil {
				return err
			}
			if err := grown(ctx, r, large); err != nil {
				return err
			}
			took, err := scanOn(ctx, large)
			r.Add("growth.scan_ms", bench.Milliseconds(took))
			return err
		}),
	}
}

// fillLarge makes a history, a future, and a tag that is paused with all its tasks overdue.
func (o *options) fillLarge(ctx context.Context, d *bench.Database) error {
	now := time.Now()
	for _, part := range []struct {
		n int
		bench.Filling
	}{
		{o.rows, bench.Filling{Status: row.Completed, From: now.Add(-24 * time.Hour)}}, // within the retention
		{o.rows, bench.Filling{From: now.Add(24 * time.Hour), Apart: time.Millisecond}},
		{min(o.rows, million), bench.Filling{Tag: pausedTag, From: now.Add(-time.Hour)}},
	} {
		if _, err := d.Fill(ctx, part.n, part.Filling); err != nil {
			return err
		}
	}
	return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error { return s.Pause(ctx, pausedTag) })
}

// grown measures an empty table and the large one in turns.
func grown(ctx context.Context, r *bench.Runner, large *bench.Database) error {
	for range growthTurns {
		var saved, drained float64
		err := r.OnFresh(ctx, func(ctx context.Context, d *bench.Database) (err error) {
			saved, drained, err = speedOn(ctx, r, d)
			return err
		})
		if err != nil {
			return err
		}
		savedThere, drainedThere, err := speedOn(ctx, r, large)
		if err != nil {
			return err
		}
		r.Add("growth.save_ratio", savedThere/saved)
		r.Add("growth.drain_ratio", drainedThere/drained)
	}
	return nil
}

// speedOn measures saves and a drain, in tasks a second.
func speedOn(ctx context.Context, r *bench.Runner, d *bench.Database) (saved, drained float64, err error) {
	err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		done, err := r.Warmed(ctx, bench.SaveCallers, bench.SaveOne(s))
		if err != nil {
			return err
		}
		nothing := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
		if err := s.Register(pausedTag, nothing); err != nil {
			return err
		}
		saved = done.PerSecond()
		drained, err = d.Drain(ctx, s, r.Count(bench.Tasks))
		return err
	})
	return saved, drained, err
}

// scanOn returns how long the compensating scan's read takes, as the engine does it: of the tags that are served and
// not paused, however long they are overdue.
func scanOn(ctx context.Context, d *bench.Database) (time.Duration, error) {
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	st := sqlstore.New(pool, d.Kind)
	defer st.Close(context.WithoutCancel(ctx))
	var took []time.Duration
	for range growthScans {
		began := time.Now()
		found, err := st.Due(ctx, row.Window{Tags: []string{bench.Tag}, To: row.At(began.Add(-time.Second)),
			Limit: scanPage})
		if err != nil {
			return 0, err
		}
		if len(found) > 0 {
			return 0, fmt.Errorf("the scan finds %d overdue tasks where none should be", len(found))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
