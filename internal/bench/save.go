package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
)

const (
	saveCallers = 64
	manyCallers = 256
)

var save = measurement{
	name: "save", quick: true,
	figures: []figure{
		{"save.per_s", "tasks by 64 goroutines that call SaveDelayTask one at a time"},
		{"save.p50_ms", "half of these calls took at most"},
		{"save.p99_ms", "99 of 100 of these calls took at most"},
		{"save.ratio", "save.per_s in terms of raw.insert_single_per_s"},
		{"save.callers_256.per_s", "the same with 256 goroutines"},
		{"save.callers_256.p50_ms", "half of those calls took at most"},
		{"save.callers_256.p99_ms", "99 of 100 of those calls took at most"},
		{"save.callers_256.ratio", "save.callers_256.per_s in terms of raw.insert_single_per_s"},
	},
	takes: func(w workload) time.Duration {
		if w.quick {
			return onFreshTakes + w.warm + w.span
		}
		return 2 * (onFreshTakes + w.warm + w.span)
	},
	measure: func(ctx context.Context, r *run) error {
		if err := r.saves(ctx, "save", saveCallers); err != nil || r.Quick {
			return err
		}
		return r.saves(ctx, "save.callers_256", manyCallers)
	},
	derive: func(f *figures) {
		f.ratio("save.ratio", "save.per_s", "raw.insert_single_per_s")
		f.ratio("save.callers_256.ratio", "save.callers_256.per_s", "raw.insert_single_per_s")
	},
}

func (r *run) saves(ctx context.Context, key string, callers int) error {
	return r.onFresh(ctx, func(ctx context.Context, d *database) error {
		done, err := r.saveOn(ctx, d, callers)
		if err != nil {
			return err
		}
		r.figures.add(key+".per_s", done.perSecond())
		r.figures.addPercentiles(key, done.calls, p50, p99)
		return nil
	})
}

// saveOn measures saves by a scheduler on the database.
func (r *run) saveOn(ctx context.Context, d *database, callers int) (done hammered, err error) {
	err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		done, err = r.saveBy(ctx, s, callers)
		return err
	})
	return done, err
}

// saveBy measures saves of tasks that are not due soon, by a scheduler that serves nothing.
func (r *run) saveBy(ctx context.Context, s *delaytask.Scheduler, callers int) (hammered, error) {
	return r.warmed(ctx, callers, func(ctx context.Context, _ int) (int, error) {
		_, err := s.SaveDelayTask(ctx, benchTag, benchBody, farDelay)
		return 1, err
	})
}

// warmed measures for the span of the run, after the time to warm up.
func (r *run) warmed(ctx context.Context, workers int, op func(context.Context, int) (int, error)) (hammered, error) {
	if _, err := hammer(ctx, workers, r.workload.warm, op); err != nil {
		return hammered{}, err
	}
	done, err := hammer(ctx, workers, r.workload.span, op)
	if err == nil && done.count == 0 {
		err = errors.New("nothing was left to do after the warm-up; measure for a shorter time")
	}
	return done, err
}

const (
	bulkCallers = batchConns // as many as raw has connections
	bulkItems   = 1000
)

var saveBulk = measurement{
	name: "save_bulk", quick: true,
	figures: []figure{
		{"save_bulk.per_s", "tasks by 4 goroutines that call SaveDelayTasks with 1,000 at a time"},
		{"save_bulk.ratio", "save_bulk.per_s in terms of raw.insert_batch_per_s"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.warm + w.span },
	measure: func(ctx context.Context, r *run) error {
		items := slices.Repeat([]delaytask.Item{{Tag: benchTag, Body: benchBody, Delay: farDelay}}, bulkItems)
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
			return r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
				done, err := r.warmed(ctx, bulkCallers, func(ctx context.Context, _ int) (int, error) {
					_, err := s.SaveDelayTasks(ctx, items)
					return len(items), err
				})
				if err == nil {
					r.figures.add("save_bulk.per_s", done.perSecond())
				}
				return err
			})
		})
	},
	derive: func(f *figures) { f.ratio("save_bulk.ratio", "save_bulk.per_s", "raw.insert_batch_per_s") },
}

const txCallers = 32

var saveTx = measurement{
	name: "save_tx", quick: true,
	figures: []figure{{"save_tx.per_s",
		"tasks by 32 goroutines, each with SaveDelayTaskTx in a transaction of its own"}},
	takes: func(w workload) time.Duration { return onFreshTakes + w.warm + w.span },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		pool, err := d.connect(ctx, txCallers)
		if err != nil {
			return err
		}
		defer pool.Close()
		return r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
			done, err := r.warmed(ctx, txCallers, func(ctx context.Context, _ int) (int, error) {
				return 1, saveInTx(ctx, pool, s)
			})
			if err == nil {
				r.figures.add("save_tx.per_s", done.perSecond())
			}
			return err
		})
	}),
}

func saveInTx(ctx context.Context, pool *sqlx.DB, s *delaytask.Scheduler) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := s.SaveDelayTaskTx(ctx, tx, benchTag, benchBody, farDelay); err != nil {
		return err
	}
	return tx.Commit()
}
