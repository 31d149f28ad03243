package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

// onFilled makes a measurement of f, which shares the table with the others of the run: it takes minutes to fill. Where
// the server has another clock, f is left out.
func onFilled(f func(context.Context, *run, *database) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if r.filled == nil {
			if err := r.openFilled(ctx); err != nil {
				return err
			}
		}
		return f(ctx, r, r.filled)
	}
}

// openFilled opens the database that was kept, or fills a new one.
func (r *run) openFilled(ctx context.Context) (err error) {
	var d *database
	if r.Database != "" {
		d, err = r.place.existing(r.Database)
	} else {
		d, err = r.place.create(ctx)
	}
	if err != nil {
		return err
	}
	defer func() {
		if r.filled == nil {
			err = errors.Join(err, d.drop())
		}
	}()
	if err := d.sameClock(ctx); err != nil {
		return err
	}
	if r.Database == "" {
		if err := errors.Join(d.migrate(ctx), r.fillUI(ctx, d)); err != nil {
			return err
		}
		if err := lateness.Pass(ctx, r.workload.lasting(growthRest)); err != nil {
			return err
		}
	}
	r.filled = d
	if r.Keep || r.Database != "" {
		r.meta.Database = d.name
	}
	return nil
}

// fillUI makes a history of a week, a future of a month, and failures, of many tags, and the task uiTask.
func (r *run) fillUI(ctx context.Context, d *database) error {
	now := row.At(time.Now())
	spread := func(from row.Time, over time.Duration, n int) func(int) row.Time {
		return func(i int) row.Time { return from.Add(over / time.Duration(max(n, 1)) * time.Duration(i)) }
	}
	const day = 24 * time.Hour
	perTag := r.workload.rows / uiTags
	completed, pending, failed := perTag*80/100, perTag*15/100, perTag*3/100
	for tag := range uiTags {
		for _, part := range []struct {
			n int
			filling
		}{
			{completed, filling{status: row.Completed, due: spread(now.Add(-6*day), 6*day, completed)}},
			{pending, filling{status: row.Pending, due: spread(now.Add(time.Hour), 30*day, pending)}},
			{failed, filling{status: row.Failed, due: spread(now.Add(-6*day), 6*day, failed)}},
		} {
			part.tag = uiTag(tag)
			if _, err := d.fill(ctx, part.n, part.filling); err != nil {
				return err
			}
		}
	}
	var id int64
	err := r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) (err error) {
		id, err = s.SaveDelayTask(ctx, uiTag(7), nil, time.Hour, delaytask.WithKey(uiKey))
		return err
	})
	if err != nil {
		return err
	}
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.ExecContext(ctx, "UPDATE delay_task_message SET id = ? WHERE id = ?", uiTask, id); err != nil {
		return fmt.Errorf("give a task its id: %w", err)
	}
	return nil
}
