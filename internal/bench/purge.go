package bench

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	purgeRate = 500
	purgeAge  = 60 * 24 * time.Hour // past every retention
)

var purge = measurement{
	name: "purge", once: true,
	figures: []figure{
		{"purge.lateness_p99_ms", "99 of 100 tasks are at most so late at 500 a second while a million old ones are deleted"},
		{"purge.per_s", "finished tasks deleted meanwhile"},
	},
	takes: func(w workload) time.Duration {
		return onFreshTakes + filledIn(w.million()) + w.ahead() + w.late
	},
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
			old := row.At(time.Now().Add(-purgeAge))
			due := func(i int) row.Time { return old + row.Time(i) }
			if _, err := d.fill(ctx, r.workload.million(), filling{status: row.Completed, due: due}); err != nil {
				return err
			}
			return r.whilePurging(ctx, d)
		})
	},
}

func (r *run) whilePurging(ctx context.Context, d *database) error {
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	began := time.Now()
	j, err := r.latenessOn(ctx, d, purgeRate)
	if err != nil {
		return err
	}
	took := time.Since(began)
	left, err := countCompleted(ctx, pool)
	if err != nil {
		return err
	}
	r.figures.add("purge.lateness_p99_ms", milliseconds(lateness.Percentile(j.Starts, 99)))
	r.figures.add("purge.per_s", float64(r.workload.million()-left)/took.Seconds())
	return nil
}
