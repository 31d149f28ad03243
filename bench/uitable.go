package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	uiTags = 100
	uiKey  = "bench.key"
	uiTask = 1 // the id of a pending task with this key, known so that nothing looks for it before a cold read
)

func uiTag(i int) string { return fmt.Sprintf("bench.ui.%03d", i) }

// onFilled makes a measurement of f, which shares the table with the others of the run: it takes minutes to fill. Where
// the server has another clock, f is left out.
func (o *options) onFilled(
	f func(context.Context, *bench.Runner, *bench.Database) error,
) func(context.Context, *bench.Runner) error {
	return func(ctx context.Context, r *bench.Runner) (err error) {
		if o.filled == nil && o.database != "" {
			o.filled, err = o.existing()
		} else if o.filled == nil {
			o.filled, err = r.Create(ctx)
			if err == nil {
				err = errors.Join(o.fillUI(ctx, o.filled), lateness.Pass(ctx, r.Lasting(growthRest)))
			}
		}
		if err != nil {
			return err
		}
		if err := o.filled.SameClock(ctx); err != nil {
			return err
		}
		return f(ctx, r, o.filled)
	}
}

// existing is the database that an earlier run has kept.
func (o *options) existing() (*bench.Database, error) {
	target, err := sqlstore.ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	d := &bench.Database{Name: o.database, DSN: target.WithDatabase(o.database), Kind: target.Kind()}
	if d.Kind.Embedded() {
		d.DSN = "sqlite:" + o.database
		if _, err := os.Stat(o.database); err != nil {
			return nil, fmt.Errorf("open the database that was kept: %w", err)
		}
	}
	return d, nil
}

// fillUI makes a history of a week, a future of a month, and failures, of many tags, and the task uiTask.
func (o *options) fillUI(ctx context.Context, d *bench.Database) error {
	const day = 24 * time.Hour
	now, perTag := time.Now(), o.rows/uiTags
	for i := range uiTags {
		for _, part := range []struct {
			percent int
			status  row.Status
			from    time.Duration
			over    time.Duration
		}{
			{80, row.Completed, -6 * day, 6 * day},
			{15, row.Pending, time.Hour, 30 * day},
			{3, row.Failed, -6 * day, 6 * day},
		} {
			n := perTag * part.percent / 100
			_, err := d.Fill(ctx, n, bench.Filling{
				Tag: uiTag(i), Status: part.status, From: now.Add(part.from),
				Apart: part.over / time.Duration(max(n, 1)),
			})
			if err != nil {
				return err
			}
		}
	}
	var id int64
	err := d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) (err error) {
		id, err = s.SaveDelayTask(ctx, uiTag(7), nil, time.Hour, delaytask.WithKey(uiKey))
		return err
	})
	if err != nil {
		return err
	}
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.ExecContext(ctx, "UPDATE delay_task_message SET id = ? WHERE id = ?", uiTask, id); err != nil {
		return fmt.Errorf("give a task its id: %w", err)
	}
	return nil
}
