package bench

import (
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
)

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
