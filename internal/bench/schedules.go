package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bench/usage"
	"github.com/delaytask/delaytask/processor"
)

const (
	scheduleTag = "bench.tick"
	// schedulePeriod is that of 1,000 schedules with 100 ticks a second.
	schedulePeriod = 10 * time.Second
	schedulesMost  = 1000
	midnightMost   = 10_000
	manyMost       = 100_000
	manyDue        = 1000 // of them, in a minute
)

var schedulesTicks = measurement{
	name: "schedules.ticks", apart: true, once: true,
	figures: []figure{
		{"schedules.declare_ms", "until 1,000 schedules that a program declares are stored"},
		{"schedules.late.p50_ms", "start behind the due time of 1,000 schedules with 100 ticks a second"},
		{"schedules.late.p99_ms", "99 of 100 ticks are at most so late"},
		{"schedules.late.max_ms", "all"},
		{"schedules.early", "ticks that started before they were due"},
		{"schedules.lost", "ticks that did not run"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + schedulePeriod + w.late },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		e, err := r.ticksOn(ctx, d, order{Count: schedulesMost, Span: r.workload.late})
		if err != nil {
			return err
		}
		r.figures.add("schedules.declare_ms", milliseconds(e.Declared))
		r.figures.addPercentiles("schedules.late", e.Starts, p50, p99, most)
		r.figures.add("schedules.early", float64(e.Early))
		r.figures.add("schedules.lost", float64(e.Lost))
		return nil
	}),
}

var schedulesMidnight = measurement{
	name: "schedules.midnight", apart: true, once: true,
	figures: []figure{
		{"schedules.midnight_ms", "until 10,000 schedules have started that are due in the same second"},
	},
	takes: func(workload) time.Duration { return onFreshTakes + 90*time.Second },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		e, err := r.ticksOn(ctx, d, order{Count: midnightMost})
		if err != nil {
			return err
		}
		r.figures.add("schedules.midnight_ms", milliseconds(e.Last))
		return nil
	}),
}

var schedulesMany = measurement{
	name: "schedules.many", apart: true, once: true,
	figures: []figure{
		{"schedules.many_cpu_pct", "of one core, for 100,000 schedules of which 1,000 are due a minute"},
		{"schedules.none_cpu_pct", "the same without schedules"},
	},
	takes: func(w workload) time.Duration { return 2*(onFreshTakes+w.idle) + 2*time.Minute },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		none, err := r.idle(ctx, d, 0)
		if err != nil {
			return err
		}
		e, err := r.ticksOn(ctx, d, order{Count: manyMost, Span: r.workload.idle})
		if err != nil {
			return err
		}
		r.figures.add("schedules.none_cpu_pct", 100*none.CPU.Seconds()/none.Took.Seconds())
		r.figures.add("schedules.many_cpu_pct", 100*e.CPU.Seconds()/e.Took.Seconds())
		return nil
	}),
}

var schedulesBackfill = measurement{
	name: "schedules.backfill", apart: true, once: true,
	figures: []figure{
		{"schedules.backfill.alone.p50_ms", "start behind the due time at 500 tasks a second, before a backfill"},
		{"schedules.backfill.alone.p99_ms", "99 of 100 tasks are at most so late"},
		{"schedules.backfill.beside.p50_ms", "the same while a backfill of 10,000 ticks runs, 10 at a time"},
		{"schedules.backfill.beside.p99_ms", "99 of 100 tasks are at most so late"},
		{"schedules.backfill.took_ms", "until its last tick has started"},
		{"schedules.backfill.early", "tasks that started before they were due"},
		{"schedules.backfill.lost", "tasks that did not start, or not complete"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.ahead() + 2*w.late + time.Minute },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		if err := d.sameClock(ctx); err != nil {
			return err
		}
		p, err := startChild[backfillEvent](ctx, r, order{
			Role: "backfill", DSN: d.dsn, Rate: 500, Count: r.workload.count(backfilled),
			Span: 2 * r.workload.late, Rest: r.workload.ahead(),
		})
		if err != nil {
			return err
		}
		e, err := p.Last()
		if err == nil && e.Busy != "" {
			err = &leftOut{errors.New(e.Busy)}
		}
		if err != nil {
			return err
		}
		r.figures.addPercentiles("schedules.backfill.alone", e.Alone.Starts, p50, p99)
		r.figures.addPercentiles("schedules.backfill.beside", e.Starts, p50, p99)
		r.figures.add("schedules.backfill.took_ms", milliseconds(e.Took))
		r.figures.add("schedules.backfill.early", float64(e.Alone.Early+e.Early))
		r.figures.add("schedules.backfill.lost", float64(e.Alone.Lost+e.Lost))
		return nil
	}),
}

// ticksOn has a child declare schedules and run their ticks.
func (r *run) ticksOn(ctx context.Context, d *database, o order) (ticksEvent, error) {
	if err := d.sameClock(ctx); err != nil {
		return ticksEvent{}, err
	}
	o.Role, o.DSN = "ticks", d.dsn
	p, err := startChild[ticksEvent](ctx, r, o)
	if err != nil {
		return ticksEvent{}, err
	}
	return p.Last()
}

type ticksEvent struct {
	Declared time.Duration   `json:"declared"` // until all were stored
	Starts   []time.Duration `json:"starts"`   // behind the due times
	Last     time.Duration   `json:"last"`
	Early    int             `json:"early"`
	Lost     int             `json:"lost"`
	CPU      time.Duration   `json:"cpu"`
	Took     time.Duration   `json:"took"` // in which that CPU was used
}

// ticksChild runs ticks for a span. Without a span it runs one tick of all its schedules, at one second.
func ticksChild(ctx context.Context, o order, t *child.Narrator) error {
	seen := &ticksSeen{}
	cfg := delaytask.Config{ScheduleOwner: "bench", Revision: time.Now()}
	return o.onScheduler(ctx, cfg, func(s *delaytask.Scheduler) error {
		begin := time.Now().Truncate(time.Second).Add(midnightAfter)
		for i := range o.Count {
			when, opts := o.spec(i, begin)
			err := s.DeclareSchedule(fmt.Sprintf("bench-%06d", i), when, scheduleTag, benchBody, opts...)
			if err != nil {
				return err
			}
		}
		began := time.Now()
		if err := errors.Join(s.Register(scheduleTag, seen), s.Start(ctx), awaitStored(ctx, s, o.Count)); err != nil {
			return err
		}
		e := ticksEvent{Declared: time.Since(began)}
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
		seen.reset()
		before, err := usage.CPU()
		if err != nil {
			return err
		}
		from := time.Now()
		if o.Span > 0 {
			err = lateness.Pass(ctx, o.Span)
		} else {
			err = seen.await(ctx, o.Count, latenessLimit)
		}
		after, cpuErr := usage.CPU()
		if err := errors.Join(err, cpuErr); err != nil {
			return err
		}
		e.CPU, e.Took = after-before, time.Since(from)
		seen.tell(&e)
		if o.Span > 0 && o.Count == schedulesMost {
			e.Lost = max(0, int(e.Took/schedulePeriod)*o.Count-len(e.Starts))
		}
		t.Tell(e)
		return nil
	})
}

// midnightAfter is how long after the start 10,000 schedules are due that are to be stored first.
const midnightAfter = time.Minute

// spec is when the i-th schedule runs. Those of 100 ticks a second are spread by jitter.
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

func awaitStored(ctx context.Context, s *delaytask.Scheduler, n int) error {
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

// ticksSeen is a processor that notes how late ticks start.
type ticksSeen struct {
	mu   sync.Mutex
	late []time.Duration
}

// Process implements [processor.Processor].
func (s *ticksSeen) Process(_ context.Context, task *processor.Task) error {
	late := time.Since(task.Expected)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, late)
	return nil
}

func (s *ticksSeen) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = nil
}

func (s *ticksSeen) await(ctx context.Context, n int, most time.Duration) error {
	for giveUp := time.Now().Add(midnightAfter + most); ; {
		s.mu.Lock()
		seen := len(s.late)
		s.mu.Unlock()
		if seen >= n {
			return nil
		}
		if time.Now().After(giveUp) {
			return fmt.Errorf("%d of %d schedules have started", seen, n)
		}
		if err := lateness.Pass(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *ticksSeen) tell(e *ticksEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, late := range s.late {
		if late < 0 {
			e.Early++
		}
		e.Last = max(e.Last, late)
		e.Starts = append(e.Starts, late)
	}
}
