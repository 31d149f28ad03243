package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

const (
	pausedTag   = "bench.paused"
	growthTurns = 3
	growthScans = 20
	growthRest  = 15 * time.Second // for the server to flush the filled table
	scanPage    = 500              // as the engine reads
)

var growth = measurement{
	name: "growth", once: true,
	figures: []figure{
		{"growth.save_ratio", "saves a second into a table of many rows, in terms of those into an empty one"},
		{"growth.drain_ratio", "the same of tasks that are due at Start"},
		{"growth.scan_ms", "the read for overdue tasks in that table"},
	},
	takes: func(w workload) time.Duration {
		rows := 2*w.rows + min(w.rows, million)
		return 4*onFreshTakes + filledIn(rows) + w.lasting(growthRest) + 2*growthTurns*(save.takes(w)+drain.takes(w))
	},
	measure: fresh(func(ctx context.Context, r *run, large *database) error {
		if err := r.fillLarge(ctx, large); err != nil {
			return err
		}
		if err := lateness.Pass(ctx, r.workload.lasting(growthRest)); err != nil {
			return err
		}
		if err := r.grown(ctx, large); err != nil {
			return err
		}
		took, err := r.scanOn(ctx, large)
		if err == nil {
			r.figures.add("growth.scan_ms", milliseconds(took))
		}
		return err
	}),
}

// fillLarge makes a history, a future, and a tag that is paused with all its tasks overdue.
func (r *run) fillLarge(ctx context.Context, d *database) error {
	yesterday := row.At(time.Now().Add(-24 * time.Hour)) // within the retention
	hour := row.At(time.Now().Add(-time.Hour))
	for _, part := range []struct {
		n int
		filling
	}{
		{r.workload.rows, filling{status: row.Completed, due: func(i int) row.Time { return yesterday + row.Time(i) }}},
		{r.workload.rows, filling{status: row.Pending, due: dueTomorrow()}},
		{min(r.workload.rows, million), filling{
			tag: pausedTag, status: row.Pending, due: func(i int) row.Time { return hour + row.Time(i) },
		}},
	} {
		if _, err := d.fill(ctx, part.n, part.filling); err != nil {
			return err
		}
	}
	return r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		return s.Pause(ctx, pausedTag)
	})
}

// grown measures an empty table and the large one in turns.
func (r *run) grown(ctx context.Context, large *database) error {
	for range growthTurns {
		var empty, full speed
		err := r.onFresh(ctx, func(ctx context.Context, d *database) (err error) {
			empty, err = r.speedOn(ctx, d)
			return err
		})
		if err != nil {
			return err
		}
		if full, err = r.speedOn(ctx, large); err != nil {
			return err
		}
		if empty.saved > 0 {
			r.figures.add("growth.save_ratio", full.saved/empty.saved)
		}
		r.figures.add("growth.drain_ratio", full.drained/empty.drained)
	}
	return nil
}

// speed is in tasks a second.
type speed struct{ saved, drained float64 }

func (r *run) speedOn(ctx context.Context, d *database) (speed, error) {
	done, err := r.saveOn(ctx, d, saveCallers)
	if err != nil {
		return speed{}, err
	}
	n := r.workload.drain
	if _, err := d.fill(ctx, n, filling{status: row.Pending, due: dueNow()}); err != nil {
		return speed{}, err
	}
	took, err := r.drainOn(ctx, d, n, pausedTag)
	return speed{done.perSecond(), float64(n) / took.Seconds()}, err
}

// scanOn returns how long the compensating scan's read takes, as the engine does it: of the tags that are served and
// not paused, however long they are overdue.
func (r *run) scanOn(ctx context.Context, d *database) (time.Duration, error) {
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	st := sqlstore.New(pool, d.kind)
	defer st.Close(context.WithoutCancel(ctx))
	var took []time.Duration
	for range growthScans {
		began := time.Now()
		found, err := st.Due(ctx, row.Window{Tags: []string{benchTag}, To: row.At(began.Add(-time.Second)),
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
