package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/scheduler"
)

// Drain measures how fast tasks run that are due when a scheduler starts.
var Drain = Measurement{
	Name: "drain", Quick: true,
	Figures: []Figure{
		{"drain.per_s", "tasks that are due at Start, from then until the last result is stored"},
		{"drain.ratio", "drain.per_s in terms of what raw claims and settles in turn"},
	},
	Measure: Fresh(func(ctx context.Context, r *Runner, d *Database) error {
		return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
			perSecond, err := d.drain(ctx, s, r.Count(Tasks), func(run func() error) error {
				if !r.Budget {
					return run()
				}
				return r.budget(ctx, d, r.Count(Tasks), run)
			})
			r.Add("drain.per_s", perSecond)
			return err
		})
	}),
	Derive: func(r *Runner) {
		claim, claimed := r.Median("raw.claim_batch_per_s")
		settle, settled := r.Median("raw.settle_batch_per_s")
		drained, measured := r.Median("drain.per_s")
		if claimed && settled && measured {
			r.Add("drain.ratio", drained*(1/claim+1/settle))
		}
	},
}

const (
	LateTag  = "bench.late"     // of tasks that fall due one after the other
	RunLimit = 30 * time.Second // for tasks to run that are due
)

// Drain fills the table with n due tasks, and has a scheduler run them. It returns how many a second it completes, from
// its start until it has stored all results and is stopped.
func (d *Database) Drain(ctx context.Context, s *scheduler.Scheduler, n int) (perSecond float64, err error) {
	return d.drain(ctx, s, n, func(run func() error) error { return run() })
}

// drain is Drain by a function that calls run once.
func (d *Database) drain(
	ctx context.Context, s *scheduler.Scheduler, n int, by func(run func() error) error,
) (perSecond float64, err error) {
	starts, tag := lateness.NewStarts(n), "bench.drain."+rand.Text()
	if _, err := d.Fill(ctx, n, Filling{Tag: tag, From: time.Now()}); err != nil {
		return 0, err
	}
	if err := s.Register(tag, starts); err != nil {
		return 0, err
	}
	limit := RunLimit + time.Duration(n)*10*time.Millisecond // more than it takes where it is worth measuring
	var took time.Duration
	err = by(func() error {
		began := time.Now()
		err := errors.Join(s.Start(ctx), starts.Wait(ctx, limit), s.Stop(ctx))
		took = time.Since(began)
		return err
	})
	if err != nil {
		return 0, err
	}
	tasks, err := d.TasksOf(ctx, tag)
	if lost := starts.Judge(tasks).Lost; err == nil && lost > 0 {
		err = fmt.Errorf("%d of %d tasks are not completed", lost, n)
	}
	return float64(n) / took.Seconds(), err
}

// latenessAt measures tasks that become due at a rate.
func latenessAt(rate int) Measurement {
	name := fmt.Sprintf("lateness.%d", rate)
	return Measurement{
		Name: name, Turns: 1, Quick: rate == 500 || rate == 2000,
		Figures: []Figure{
			{name + ".p50_ms", fmt.Sprintf("start behind the due time at %d tasks a second", rate)},
			{name + ".p99_ms", "99 of 100 tasks are at most so late"},
			{name + ".p999_ms", "999 of 1,000"},
			{name + ".max_ms", "all"},
			{name + ".ratio", name + ".p50_ms in terms of raw.insert_alone.p50_ms"},
			{name + ".early", "tasks that started before they were due"},
			{name + ".lost", "tasks that did not start, or not complete"},
			{name + ".duplicates", "starts beyond the first of a task"},
		},
		Measure: Fresh(func(ctx context.Context, r *Runner, d *Database) error {
			j, err := d.Lateness(ctx, rate, r.Lasting(LateSpan), r.Ahead())
			if err == nil {
				r.AddJudgement(name, j)
			}
			return err
		}),
		Derive: func(r *Runner) { r.AddRatio(name+".ratio", name+".p50_ms", "raw.insert_alone.p50_ms") },
	}
}

// Lateness saves tasks that are due within the span, which begins later by ahead at least, and runs them.
func (d *Database) Lateness(
	ctx context.Context, rate int, span, ahead time.Duration,
) (j lateness.Judgement, err error) {
	n := max(1, int(float64(rate)*span.Seconds()))
	starts := lateness.NewStarts(n)
	if err := d.SameClock(ctx); err != nil {
		return j, err
	}
	err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		if err := errors.Join(s.Register(LateTag, starts), s.Start(ctx)); err != nil {
			return err
		}
		begin, err := SaveAhead(ctx, n, span, ahead, SaverOf(s, LateTag, Body))
		if err != nil {
			return err
		}
		_ = starts.Wait(ctx, time.Until(begin.Add(span))+RunLimit) // what has not started is judged
		return context.Cause(ctx)
	})
	if err != nil {
		return j, err
	}
	tasks, err := d.TasksOf(ctx, LateTag)
	return starts.Judge(tasks), err
}

// TasksOf reads all tasks of a tag from the table.
func (d *Database) TasksOf(ctx context.Context, tag string) (all []delaytask.TaskRow, err error) {
	err = d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		for filter := (delaytask.Filter{Tag: tag, Limit: 1000}); ; {
			page, err := s.List(ctx, filter)
			all = append(all, page.Tasks...)
			if filter.After = page.Next; err != nil || page.Next == "" {
				return err
			}
		}
	})
	return all, err
}

// SameClock returns [LeftOut] where lateness cannot be measured, because the server has another clock.
func (d *Database) SameClock(ctx context.Context) error {
	if d.Kind.Embedded() {
		return nil
	}
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err = lateness.ClockAhead(ctx, pool.DB, 0); errors.Is(err, lateness.ErrOtherClock) {
		return LeftOut(err.Error())
	}
	return err
}

// Saver saves a task for each moment, at most a thousand.
type Saver func(ctx context.Context, moments []time.Time) error

const savedAtOnce = 1000

// SaveAhead saves n tasks that are due at random moments of a span, and returns when it begins: later by ahead than
// the saves would end at 10,000 a second. It returns [LeftOut] when they ended half a second later still.
func SaveAhead(ctx context.Context, n int, span, ahead time.Duration, save Saver) (begin time.Time, err error) {
	begin = time.Now().Add(ahead + time.Duration(n)*100*time.Microsecond)
	moments := make([]time.Time, n)
	for i := range moments {
		moments[i] = begin.Add(mathrand.N(span))
	}
	for moments := range slices.Chunk(moments, savedAtOnce) {
		if err := save(ctx, moments); err != nil {
			return begin, err
		}
	}
	if left := time.Until(begin); left < ahead-500*time.Millisecond {
		err = LeftOut(fmt.Sprintf("this machine is too busy to be measured: saving %d tasks ended %v before the first "+
			"was due", n, left.Round(time.Millisecond)))
	}
	return begin, err
}

// SaverOf saves tasks by a scheduler, or by a client of a service.
func SaverOf(
	by interface {
		SaveDelayTasks(context.Context, []delaytask.Item) ([]delaytask.SaveResult, error)
	}, tag string, body any,
) Saver {
	return func(ctx context.Context, moments []time.Time) error {
		items := make([]delaytask.Item, len(moments))
		for i, at := range moments {
			items[i] = delaytask.Item{Tag: tag, Body: body, Options: []delaytask.Option{delaytask.WithTime(at)}}
		}
		_, err := by.SaveDelayTasks(ctx, items)
		return err
	}
}
