package bench

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
)

const txCallers = 32

var saveTx = measurement{
	name: "save_tx", quick: true,
	figures: []figure{{"save_tx.per_s", "tasks by 32 goroutines, each with SaveDelayTaskTx in a transaction of its own"}},
	takes:   func(w workload) time.Duration { return onFreshTakes + w.warm + w.span },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
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
		})
	},
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
