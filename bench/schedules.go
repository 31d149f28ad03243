package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	scheduleTag = "bench.tick"
	// schedulePeriod is the period of each of 1,000 schedules that have 100 ticks a second together.
	schedulePeriod = 10 * time.Second
	schedulesMost  = 1000
	midnightMost   = 10_000
	manyMost       = 100_000
	manyDue        = 1000 // of them, in a minute
)

var schedulesTicks = bench.Measurement{
	Name: "schedules.ticks", Apart: true, Turns: 1,
	Figures: []bench.Figure{
		{"schedules.declare_ms", "until 1,000 schedules that a program declares are stored"},
		{"schedules.late.p50_ms", "start behind the due time of 1,000 schedules with 100 ticks a second"},
		{"schedules.late.p99_ms", "99 of 100 ticks are at most so late"},
		{"schedules.late.max_ms", "all"},
		{"schedules.early", "ticks that started before they were due"},
		{"schedules.lost", "ticks that did not run"},
	},
	Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		e, err := ticksOn(ctx, d, order{Count: schedulesMost, Span: r.Lasting(bench.LateSpan)})
		if err != nil {
			return err
		}
		r.Add("schedules.declare_ms", bench.Milliseconds(e.Declared))
		r.AddPercentiles("schedules.late", e.Starts, "p50_ms", "p99_ms", "max_ms")
		r.Add("schedules.early", float64(e.Early))
		r.Add("schedules.lost", float64(e.Lost))
		return nil
	}),
}

var schedulesMidnight = bench.Measurement{
	Name: "schedules.midnight", Apart: true, Turns: 1,
	Figures: []bench.Figure{
		{"schedules.midnight_ms", "until 10,000 schedules have started that are due in the same second"},
	},
	Measure: onSameClock(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		e, err := ticksOn(ctx, d, order{Count: midnightMost})
		if err == nil {
			r.Add("schedules.midnight_ms", bench.Milliseconds(e.Last))
		}
		return err
	}),
}

var schedulesMany = bench.Measurement{
	Name: "schedules.many", Apart: true, Turns: 1,
	Figures: []bench.Figure{
		{"schedules.many_cpu_pct", "of one core, for 100,000 schedules of which 1,000 are due a minute"},
		{"schedules.none_cpu_pct", "the same without schedules"},
	},
	Measure: bench.Fresh(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
		span := r.Lasting(time.Minute)
		none, err := idle(ctx, d, span, 0)
		if err != nil {
			return err
		}
		e, err := ticksOn(ctx, d, order{Count: manyMost, Span: span})
		if err == nil {
			r.Add("schedules.none_cpu_pct", none.percent())
			r.Add("schedules.many_cpu_pct", e.percent())
		}
		return err
	}),
}

// ticksOn has a child declare schedules and run their ticks.
func ticksOn(ctx context.Context, d *bench.Database, o order) (ticksEvent, error) {
	o.Role, o.DSN = "ticks", d.DSN
	return ask[ticksEvent](ctx, o)
}

type ticksEvent struct {
	idleEvent                 // what it used meanwhile
	Declared  time.Duration   // until all were stored
	Starts    []time.Duration // behind the due times
	Last      time.Duration
	Early     int
	Lost      int
}

// ticksChild runs ticks for a span. Without a span it runs one tick of all its schedules, at one second.
func ticksChild(ctx context.Context, o order, t *child.Narrator) error {
	seen := lateness.NewStarts(o.Count)
	var e ticksEvent
	var from, until time.Time
	cfg := scheduler.Config{ScheduleOwner: "bench", Revision: time.Now()}
	err := o.database().OnScheduler(ctx, cfg, func(s *scheduler.Scheduler) (err error) {
		begin := time.Now().Truncate(time.Second).Add(midnightAfter)
		for i := range o.Count {
			when, opts := o.spec(i, begin)
			err := s.DeclareSchedule(fmt.Sprintf("bench-%06d", i), when, scheduleTag, bench.Body, opts...)
			if err != nil {
				return err
			}
		}
		began := time.Now()
		if err := errors.Join(s.Register(scheduleTag, seen), s.Start(ctx), awaitStored(ctx, s, o.Count)); err != nil {
			return err
		}
		e.Declared = time.Since(began)
		rest := 2 * schedulePeriod // what is planted first may be late, because it was stored late
		switch {
		case o.Span == 0:
			rest = time.Until(begin) - time.Second
		case o.Count == manyMost:
			rest = 90 * time.Second // until the set was compared with the table once more, and then is left alone
		}
		if err := lateness.Pass(ctx, rest); err != nil {
			return err
		}
		from = time.Now()
		e.idleEvent, err = using(func() error {
			if o.Span > 0 {
				return lateness.Pass(ctx, o.Span)
			}
			return seen.Wait(ctx, midnightAfter+bench.RunLimit)
		})
		until = time.Now()
		return err
	})
	if err != nil {
		return err
	}
	tasks, err := o.database().TasksOf(ctx, scheduleTag)
	if err != nil {
		return err
	}
	j := seen.Judge(dueBetween(tasks, from, until))
	e.Starts, e.Early, e.Last = j.Starts, j.Early, lateness.Percentile(j.Starts, 100)
	if o.Span > 0 && o.Count == schedulesMost {
		e.Lost = max(0, int(e.Took/schedulePeriod)*o.Count-len(e.Starts))
	}
	t.Tell(e)
	return nil
}

// midnightAfter is how long after the start 10,000 schedules are due that are to be stored first.
const midnightAfter = time.Minute

// spec is when the i-th schedule runs. At 100 ticks a second, jitter spreads them.
func (o order) spec(i int, begin time.Time) (delaytask.Spec, []delaytask.Option) {
	switch {
	case o.Span == 0:
		return delaytask.At(begin), nil
	case o.Count == manyMost:
		period := time.Minute * manyMost / manyDue
		line := fmt.Sprintf("@every %v/%v", period, time.Duration(i)*time.Second%period)
		return delaytask.Spec{Lines: []string{line}}, nil
	default:
		return delaytask.Every(schedulePeriod), []delaytask.Option{delaytask.WithJitter(schedulePeriod)}
	}
}

func awaitStored(ctx context.Context, s *scheduler.Scheduler, n int) error {
	last := fmt.Sprintf("bench-%06d", n-1)
	for {
		_, err := s.GetSchedule(ctx, last)
		if !errors.Is(err, delaytask.ErrScheduleNotFound) {
			return err
		}
		if err := lateness.Pass(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
