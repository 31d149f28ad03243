package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

var drain = measurement{
	name: "drain", quick: true,
	figures: []figure{
		{"drain.per_s", "tasks that are due at Start, from then until the last result is stored"},
		{"drain.ratio", "drain.per_s in terms of what raw claims and settles in turn"},
	},
	takes: func(w workload) time.Duration {
		return onFreshTakes + filledIn(w.drain) + time.Duration(w.drain)*80*time.Microsecond
	},
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		if _, err := d.fill(ctx, r.workload.drain, filling{status: row.Pending, due: dueNow()}); err != nil {
			return err
		}
		took, err := r.drainOn(ctx, d, r.workload.drain)
		if err == nil {
			r.figures.add("drain.per_s", float64(r.workload.drain)/took.Seconds())
		}
		return err
	}),
	derive: func(f *figures) {
		claim, claimed := f.median("raw.claim_batch_per_s")
		settle, settled := f.median("raw.settle_batch_per_s")
		drained, measured := f.median("drain.per_s")
		if claimed && settled && measured {
			f.add("drain.ratio", drained*(1/claim+1/settle))
		}
	},
}

// drainOn starts a scheduler on a database that holds n due tasks of benchTag, and returns how long it takes from then
// until all of them are completed in the table. It serves more tags, whose tasks are not to run.
func (r *run) drainOn(ctx context.Context, d *database, n int, more ...string) (took time.Duration, err error) {
	err = r.withScheduler(ctx, d, delaytask.Config{}, func(ctx context.Context, s *delaytask.Scheduler) error {
		took, err = drainBy(ctx, s, d, n, more...)
		return err
	})
	return took, err
}

// drainBy is drainOn for a scheduler that is not started.
func drainBy(
	ctx context.Context, s *delaytask.Scheduler, d *database, n int, more ...string,
) (took time.Duration, err error) {
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	before, err := countCompleted(ctx, pool)
	if err != nil {
		return 0, err
	}
	seen := newSeen(n)
	for _, tag := range append(more, benchTag) {
		if err := s.Register(tag, seen); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	if err := s.Start(ctx); err != nil {
		return 0, err
	}
	if err := seen.wait(ctx); err != nil {
		return 0, err
	}
	// Results are stored in about the order in which tasks end: when the last are, all are.
	if err := await(ctx, 0, func() (int, error) { return countOpen(ctx, pool, seen.last()) }); err != nil {
		return 0, err
	}
	took = time.Since(began)
	completed, err := countCompleted(ctx, pool)
	if err != nil || completed == before+n {
		return took, err
	}
	err = await(ctx, before+n, func() (int, error) { return countCompleted(ctx, pool) })
	return time.Since(began), err
}

const (
	drainLook  = time.Millisecond // between polls for the last results
	drainLimit = time.Minute      // without any progress
)

// await returns when count is what is wanted.
func await(ctx context.Context, want int, count func() (int, error)) error {
	ticker := time.NewTicker(drainLook)
	defer ticker.Stop()
	overdue := time.After(drainLimit)
	for {
		n, err := count()
		if err != nil || n == want {
			return err
		}
		select {
		case <-ticker.C:
		case <-overdue:
			return fmt.Errorf("after %v the table counts %d tasks, want %d", drainLimit, n, want)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func countCompleted(ctx context.Context, pool *sqlx.DB) (n int, err error) {
	query := "SELECT COUNT(*) FROM delay_task_message WHERE status = ? AND tag = ?"
	if err := pool.QueryRowContext(ctx, query, row.Completed, benchTag).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the completed tasks: %w", err)
	}
	return n, nil
}

// countOpen counts those of the tasks that are not completed.
func countOpen(ctx context.Context, pool *sqlx.DB, ids []int64) (n int, err error) {
	query := "SELECT COUNT(*) FROM delay_task_message WHERE id IN (" + list(ids) + ") AND status <> ?"
	if err := pool.QueryRowContext(ctx, query, row.Completed).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the open tasks: %w", err)
	}
	return n, nil
}

// seen is a processor that only collects its tasks.
type seen struct {
	ids          []int64
	taken, noted atomic.Int64
	all          chan struct{} // closed when ids is full
}

func newSeen(want int) *seen { return &seen{ids: make([]int64, want), all: make(chan struct{})} }

// Process implements [processor.Processor].
func (s *seen) Process(_ context.Context, task *processor.Task) error {
	i := s.taken.Add(1) - 1
	if i >= int64(len(s.ids)) {
		return nil // run twice; the table is what counts
	}
	s.ids[i] = task.ID
	if s.noted.Add(1) == int64(len(s.ids)) {
		close(s.all)
	}
	return nil
}

// wait returns when all have been seen, or an error when no more come.
func (s *seen) wait(ctx context.Context) error {
	ticker := time.NewTicker(drainLimit)
	defer ticker.Stop()
	for before := int64(0); ; {
		select {
		case <-s.all:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			now := s.noted.Load()
			if now == before {
				return fmt.Errorf("after %d of %d tasks none has run for %v", now, len(s.ids), drainLimit)
			}
			before = now
		}
	}
}

const lastSeen = 1000

// last returns the tasks that came last, once all have.
func (s *seen) last() []int64 { return s.ids[max(0, len(s.ids)-lastSeen):] }

const (
	purgeRate = 500
	purgeAge  = 60 * 24 * time.Hour // past every retention
)

var purge = measurement{
	name: "purge", once: true,
	figures: []figure{
		{"purge.lateness_p99_ms",
			"99 of 100 tasks are at most so late at 500 a second while a million old ones are deleted"},
		{"purge.per_s", "finished tasks deleted meanwhile"},
	},
	takes: func(w workload) time.Duration {
		return onFreshTakes + filledIn(w.million()) + w.ahead() + w.late
	},
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		old := row.At(time.Now().Add(-purgeAge))
		due := func(i int) row.Time { return old + row.Time(i) }
		if _, err := d.fill(ctx, r.workload.million(), filling{status: row.Completed, due: due}); err != nil {
			return err
		}
		return r.whilePurging(ctx, d)
	}),
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
