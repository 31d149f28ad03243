package main

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	backfilled       = 10_000
	backfilledAtOnce = 10
)

var schedulesBackfill = bench.Measurement{
	Name: "schedules.backfill", Apart: true, Turns: 1,
	Figures: []bench.Figure{
		{"schedules.backfill.alone.p50_ms", "start behind the due time at 500 tasks a second, before a backfill"},
		{"schedules.backfill.alone.p99_ms", "99 of 100 tasks are at most so late"},
		{"schedules.backfill.beside.p50_ms", "the same while a backfill of 10,000 ticks runs, 10 at a time"},
		{"schedules.backfill.beside.p99_ms", "99 of 100 tasks are at most so late"},
		{"schedules.backfill.took_ms", "until its last tick has started"},
		{"schedules.backfill.early", "tasks that started before they were due"},
		{"schedules.backfill.lost", "tasks that did not start, or not complete"},
	},
	Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		e, err := ask[backfillEvent](ctx, order{
			Role: "backfill", DSN: d.DSN, Rate: 500, Count: r.Count(backfilled),
			Span: 2 * r.Lasting(bench.LateSpan), Rest: r.Ahead(),
		})
		if err := errors.Join(err, leftOut(e.LeftOut)); err != nil {
			return err
		}
		r.AddPercentiles("schedules.backfill.alone", e.Alone.Starts, "p50_ms", "p99_ms")
		r.AddPercentiles("schedules.backfill.beside", e.Starts, "p50_ms", "p99_ms")
		r.Add("schedules.backfill.took_ms", bench.Milliseconds(e.Took))
		r.Add("schedules.backfill.early", float64(e.Alone.Early+e.Early))
		r.Add("schedules.backfill.lost", float64(e.Alone.Lost+e.Lost))
		return nil
	}),
}

// backfillEvent is how late tasks were beside a backfill, and before it.
type backfillEvent struct {
	lateEvent
	Alone lateness.Judgement
	Took  time.Duration
}

// backfillChild runs tasks of a rate, and from the middle of the span on ticks of the past beside them.
func backfillChild(ctx context.Context, o order, t *child.Narrator) error {
	n := max(2, int(float64(o.Rate)*o.Span.Seconds()))
	starts, ticks := lateness.NewStarts(n), lateness.NewStarts(o.Count)
	var e backfillEvent
	var from, to time.Time
	err := o.database().OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		err := errors.Join(s.Register(bench.LateTag, starts), s.Register(scheduleTag, ticks), s.Start(ctx))
		if err != nil {
			return err
		}
		begin, err := bench.SaveAhead(ctx, n, o.Span, o.Rest, bench.SaverOf(s, bench.LateTag, bench.Body))
		if err != nil {
			return err
		}
		if err := lateness.Pass(ctx, time.Until(begin.Add(o.Span/2))); err != nil {
			return err
		}
		from = time.Now()
		if err := errors.Join(backfill(ctx, s, o.Count), ticks.Wait(ctx, midnightAfter+bench.RunLimit)); err != nil {
			return err
		}
		to = time.Now()
		return starts.Wait(ctx, time.Until(begin.Add(o.Span))+bench.RunLimit)
	})
	if e.LeftOut, err = whyLeftOut(err); err != nil {
		return err
	}
	tasks, err := o.database().TasksOf(ctx, bench.LateTag)
	e.Took = to.Sub(from)
	e.Alone, e.Judgement = starts.Judge(dueBetween(tasks, time.Time{}, from)), starts.Judge(dueBetween(tasks, from, to))
	t.Tell(e)
	return err
}

// backfill runs n past ticks of a schedule that has no other runs.
func backfill(ctx context.Context, s *scheduler.Scheduler, n int) error {
	const name, period = "bench", time.Minute
	_, err := s.SaveSchedule(ctx, name, delaytask.Every(period), scheduleTag, bench.Body)
	if err != nil {
		return err
	}
	if err := s.PauseSchedule(ctx, name, delaytask.Reason("only its past is of interest")); err != nil {
		return err
	}
	last := time.Now().Truncate(period)
	_, err = s.Backfill(ctx, name, last.Add(-time.Duration(n-1)*period), last, backfilledAtOnce)
	return err
}
