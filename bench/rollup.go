package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	// rollupTimes is how many times the work is done that a process does once. What it does once is too little to be
	// told from the noise of a machine.
	rollupTimes   = 600
	rollupEvery   = time.Minute / rollupTimes
	rollupClasses = 50   // of lateness, in a busy minute
	rollupTrim    = 1000 // rows at once, as a process trims
)

var rollupSave = rollupOf("save", "saves a second",
	func(ctx context.Context, r *bench.Runner, _ *bench.Database, s *scheduler.Scheduler) (float64, error) {
		done, err := r.Warmed(ctx, bench.SaveCallers, bench.SaveOne(s))
		return done.PerSecond(), err
	})

var rollupDrain = rollupOf("drain", "tasks a second",
	func(ctx context.Context, r *bench.Runner, d *bench.Database, s *scheduler.Scheduler) (float64, error) {
		return d.Drain(ctx, s, r.Count(bench.Tasks))
	})

// rollupOf measures what results over time cost. A turn is a pair: without more work for them, then with it.
func rollupOf(
	name, rate string,
	perSecond func(context.Context, *bench.Runner, *bench.Database, *scheduler.Scheduler) (float64, error),
) bench.Measurement {
	key := "rollup." + name
	return bench.Measurement{
		Name: key, Apart: true, Turns: 7,
		Figures: []bench.Figure{
			{key + ".ratio", rate + " beside 600 times the work for results over time, in terms of those without"},
			{key + ".cost_pct", "what this work costs when it is done once, in percent of " + rate},
		},
		Measure: func(ctx context.Context, r *bench.Runner) error {
			var speeds [2]float64
			var times float64
			for i := range speeds {
				err := r.OnFresh(ctx, func(ctx context.Context, d *bench.Database) error {
					return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) (err error) {
						if i == 0 {
							speeds[i], err = perSecond(ctx, r, d, s)
							return err
						}
						o := newOverTime()
						times, err = o.beside(ctx, d, s, func(ctx context.Context) (err error) {
							speeds[i], err = perSecond(ctx, r, d, s)
							return err
						})
						return err
					})
				})
				if err != nil {
					return err
				}
			}
			ratio := speeds[1] / speeds[0]
			r.Add(key+".ratio", ratio)
			r.Add(key+".cost_pct", 100*(1/ratio-1)/times)
			return nil
		},
	}
}

// overTime does the work for results over time of a busy process once more, by the product's own code.
type overTime struct {
	counts *rollup.Counts
	tags   []string
	node   string
}

func newOverTime() *overTime {
	o := &overTime{counts: rollup.NewCounts(), node: rand.Text()}
	for i := range rollup.MaxTags {
		o.tags = append(o.tags, fmt.Sprint("bench.tag", i))
	}
	return o
}

// beside does the work rollupTimes while f runs. It returns how many times it was: fewer where the database is slow.
func (o *overTime) beside(
	ctx context.Context, d *bench.Database, s *scheduler.Scheduler, f func(context.Context) error,
) (times float64, err error) {
	if err := s.Use(o.counting); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, written := make(chan struct{}), make(chan int)
	began := time.Now()
	go func() {
		n, err := o.write(ctx, d, stop)
		if err != nil {
			cancel(err)
		}
		written <- n
	}()
	err = f(ctx)
	took := time.Since(began)
	close(stop)
	n := <-written
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return min(rollupTimes, float64(n)/took.Minutes()), err
}

// counting counts what becomes of each task, and how late it starts.
func (o *overTime) counting(next processor.Processor) processor.Processor {
	return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		late := time.Since(task.Expected)
		for range rollupTimes {
			o.counts.Late(task.Tag, late)
			o.counts.Event(task.Tag, delaytask.EventCompleted)
		}
		return next.Process(ctx, task)
	})
}

// write writes minutes until stop is closed, and returns how many.
func (o *overTime) write(ctx context.Context, d *bench.Database, stop <-chan struct{}) (n int, err error) {
	pool, err := d.Connect(ctx, 2)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	st := sqlstore.New(pool, d.Kind)
	defer st.Close(context.WithoutCancel(ctx))
	life := lifecycle.New(ctx, lifecycle.Config{Log: slog.New(slog.DiscardHandler)})
	defer life.End()
	puts := &puts{Store: st}
	ticker := time.NewTicker(rollupEvery)
	defer ticker.Stop()
	for minute := row.At(time.Now()); ; minute = minute.Add(time.Minute) {
		o.fillMinute()
		writer := rollup.NewWriter(rollup.Config{
			Counts: o.counts, Store: puts, Life: life, Node: o.node,
			Now: func() (row.Time, bool) { return minute, true },
		})
		writer.Close(ctx)
		if err := errors.Join(puts.err, o.trim(ctx, puts, minute)); err != nil {
			return n, err
		}
		n++
		select {
		case <-ticker.C:
		case <-stop:
			return n, nil
		}
	}
}

// fillMinute counts tasks of all tags.
func (o *overTime) fillMinute() {
	for _, tag := range o.tags {
		for i := range rollupClasses {
			o.counts.Late(tag, time.Millisecond<<(i/4)*time.Duration(4+i%4)/4)
			o.counts.Event(tag, delaytask.EventCompleted)
		}
	}
}

// trim deletes the minute before, as large as the one that a process deletes after hours.
func (o *overTime) trim(ctx context.Context, st store.Rollups, minute row.Time) error {
	for span, before := range map[row.RollupSpan]row.Time{
		row.SpanMinute: row.SpanMinute.Begin(minute),
		row.SpanHour:   minute.Add(-rollup.KeepHours), row.SpanMark: minute.Add(-rollup.KeepHours),
	} {
		if _, err := st.TrimRollups(ctx, span, before, rollupTrim); err != nil {
			return err
		}
	}
	return nil
}

// puts keeps the errors of writes. The writer only logs them.
type puts struct {
	store.Store
	err error
}

// PutRollups implements [store.Rollups].
func (p *puts) PutRollups(ctx context.Context, rows []row.Rollup) error {
	err := p.Store.PutRollups(ctx, rows)
	p.err = errors.Join(p.err, err)
	return err
}
