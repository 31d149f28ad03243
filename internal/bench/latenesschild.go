package bench

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	latenessTag   = "bench.late"
	latenessLimit = 30 * time.Second // after the last is due
)

// lateEvent is what a child found, or why it could not measure.
type lateEvent struct {
	lateness.Judgement
	Busy string `json:"busy"`
}

// latenessChild saves tasks, runs them, and tells the judgement.
func latenessChild(ctx context.Context, o order, t *child.Teller) error {
	n := max(1, int(float64(o.Rate)*o.Span.Seconds()))
	seen := lateness.NewStarts(n)
	// The processor does nothing but look at the clock.
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
