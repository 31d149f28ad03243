package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/processor"
)

// latenessAt measures tasks that become due at a rate, in a process of their own: what this one has done before has no
// effect.
func latenessAt(rate int) measurement {
	name := fmt.Sprintf("lateness.%d", rate)
	return measurement{
		name: name, once: true, quick: rate == 500 || rate == 2000,
		figures: []figure{
			{name + ".p50_ms", fmt.Sprintf("start behind the due time at %d tasks a second", rate)},
			{name + ".p99_ms", "99 of 100 tasks are at most so late"},
			{name + ".p999_ms", "999 of 1,000"},
			{name + ".max_ms", "all"},
			{name + ".early", "tasks that started before they were due"},
			{name + ".lost", "tasks that did not start, or not complete"},
			{name + ".duplicates", "starts beyond the first of a task"},
		},
		takes: func(w workload) time.Duration { return onFreshTakes + w.ahead() + w.late },
		measure: fresh(func(ctx context.Context, r *run, d *database) error {
			j, err := r.latenessOn(ctx, d, rate)
			if err != nil {
				return err
			}
			r.figures.addPercentiles(name, j.Starts, p50, p99, p999, most)
			r.figures.add(name+".early", float64(j.Early))
			r.figures.add(name+".lost", float64(j.Lost))
			r.figures.add(name+".duplicates", float64(j.Extra))
			return nil
		}),
	}
}

// latenessOn has a child save tasks for later and run them, and judge itself by the table and this machine's clock.
func (r *run) latenessOn(ctx context.Context, d *database, rate int) (lateness.Judgement, error) {
	return r.latenessOver(ctx, d, rate, r.workload.late)
}

// latenessOver is the same for tasks that are due within the span.
func (r *run) latenessOver(
	ctx context.Context, d *database, rate int, span time.Duration,
) (lateness.Judgement, error) {
	if err := d.sameClock(ctx); err != nil {
		return lateness.Judgement{}, err
	}
	p, err := startChild[lateEvent](ctx, r, order{
		Role: "lateness", DSN: d.dsn, Rate: rate, Span: span, Rest: r.workload.ahead(),
	})
	if err != nil {
		return lateness.Judgement{}, err
	}
	e, err := p.Last()
	if err == nil && e.Busy != "" {
		err = &leftOut{errors.New(e.Busy)}
	}
	return e.Judgement, err
}

// sameClock returns [leftOut] where lateness cannot be measured.
func (d *database) sameClock(ctx context.Context) error {
	if d.kind.Embedded() {
		return nil
	}
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = lateness.SameClock(ctx, pool.DB)
	if errors.Is(err, lateness.ErrOtherClock) {
		return &leftOut{err}
	}
	return err
}

const (
	latenessHead      = 2500 * time.Millisecond
	leastLatenessHead = time.Second // at any scale: what is saved too late is not measured
)

// ahead is the least time between the save of a task and its due time, so that any process has armed it.
func (w workload) ahead() time.Duration { return max(w.lasting(latenessHead), leastLatenessHead) }

const (
	latenessTag   = "bench.late"
	latenessLimit = 30 * time.Second // after the last is due
)

// lateEvent is the result of a child, or why it could not measure.
type lateEvent struct {
	lateness.Judgement
	Busy string `json:"busy"`
}

// latenessChild saves tasks, runs them, and writes the judgement.
func latenessChild(ctx context.Context, o order, t *child.Narrator) error {
	n := max(1, int(float64(o.Rate)*o.Span.Seconds()))
	seen := lateness.NewStarts(n)
	// The processor only reads the clock.
	note := processor.Func(func(_ context.Context, task *processor.Task) error {
		at := time.Now()
		seen.Add(task.ID, at)
		return nil
	})
	err := o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		if err := errors.Join(s.Register(latenessTag, note), s.Start(ctx)); err != nil {
			return err
		}
		begin, err := saveAhead(ctx, n, o.Span, o.Rest, bySchedulerAt(s))
		if err != nil {
			return err
		}
		return seen.Wait(ctx, time.Until(begin.Add(o.Span))+latenessLimit)
	})
	if busy, ok := errors.AsType[*leftOut](err); ok {
		t.Tell(lateEvent{Busy: busy.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	return o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		tasks, err := lateness.Tasks(ctx, s, latenessTag)
		if err == nil {
			t.Tell(lateEvent{Judgement: lateness.Judge(tasks, seen, 0)})
		}
		return err
	})
}
