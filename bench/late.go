package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

// lateFigures are the figures of [bench.Runner.AddJudgement].
func lateFigures(name, about string) []bench.Figure {
	return []bench.Figure{
		{name + ".p50_ms", about},
		{name + ".p99_ms", "99 of 100 tasks are at most so late"},
		{name + ".max_ms", "all"},
		{name + ".early", "tasks that were early"},
		{name + ".lost", "tasks that never came, or are not completed"},
		{name + ".duplicates", "starts beyond the first of a task"},
	}
}

// judge compares the starts with the tasks in the table, and adds the figures.
func judge(ctx context.Context, r *bench.Runner, d *bench.Database, tag, name string, starts *lateness.Starts) error {
	tasks, err := d.TasksOf(ctx, tag)
	if err == nil {
		r.AddJudgement(name, starts.Judge(tasks))
	}
	return err
}

// pace calls f at a rate a second, n times in all or until ctx ends, each in a goroutine of its own: a slow call delays
// no other. It returns when all have, with the first error, which ends all.
func pace(ctx context.Context, rate, n int, f func(context.Context) error) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var group sync.WaitGroup
	for i := range n {
		if lateness.Pass(ctx, time.Until(began.Add(time.Duration(i)*time.Second/time.Duration(rate)))) != nil {
			break
		}
		group.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	return context.Cause(ctx)
}

const (
	purgeRate = 500
	purgeAge  = 60 * 24 * time.Hour // past every retention
)

func (o *options) purge() bench.Measurement {
	return bench.Measurement{
		Name: "purge", Turns: 1,
		Figures: []bench.Figure{
			{"purge.lateness_p99_ms",
				"99 of 100 tasks are at most so late at 500 a second while a million old ones are deleted"},
			{"purge.per_s", "finished tasks deleted meanwhile"},
		},
		Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			old := bench.Filling{Status: row.Completed, From: time.Now().Add(-purgeAge)}
			if _, err := d.Fill(ctx, o.million(), old); err != nil {
				return err
			}
			began := time.Now()
			j, err := latenessOf(ctx, r, d, purgeRate, r.Lasting(bench.LateSpan))
			if err != nil {
				return err
			}
			took := time.Since(began)
			left, err := count(ctx, d, "tag = ?", bench.Tag)
			r.Add("purge.lateness_p99_ms", bench.Milliseconds(lateness.Percentile(j.Starts, 99)))
			r.Add("purge.per_s", float64(o.million()-left)/took.Seconds())
			return err
		}),
	}
}

// count counts the tasks that a condition is true for.
func count(ctx context.Context, d *bench.Database, condition string, args ...any) (n int, err error) {
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	err = pool.GetContext(ctx, &n, "SELECT COUNT(*) FROM delay_task_message WHERE "+condition, args...)
	return n, err
}

// awaitNone returns when the condition is true for no task. It looks every millisecond, for half a minute at most.
func awaitNone(ctx context.Context, d *bench.Database, condition string, args ...any) error {
	for overdue := time.Now().Add(bench.RunLimit); ; {
		n, err := count(ctx, d, condition, args...)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(overdue) {
			return fmt.Errorf("%d tasks are not completed", n)
		}
		if err := lateness.Pass(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
