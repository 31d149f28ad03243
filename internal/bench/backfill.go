package bench

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	backfilled       = 10_000
	backfilledAtOnce = 10
)

// backfillEvent is how late tasks were beside a backfill, and before it.
type backfillEvent struct {
	lateEvent
	Alone lateness.Judgement `json:"alone"`
	Took  time.Duration      `json:"took"`
}

// backfillChild runs tasks as [latenessChild] does, and in the second half of the span ticks of the past beside them.
func backfillChild(ctx context.Context, o order, t *child.Narrator) error {
	n := max(2, int(float64(o.Rate)*o.Span.Seconds()))
	starts, ticks := lateness.NewStarts(n), &ticksSeen{}
	note := processor.Func(func(_ context.Context, task *processor.Task) error {
		starts.Add(task.ID, time.Now())
		return nil
	})
	var e backfillEvent
	var from, to time.Time
	err := o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		err := errors.Join(s.Register(latenessTag, note), s.Register(scheduleTag, ticks), s.Start(ctx))
		if err != nil {
			return err
		}
		begin, err := saveAhead(ctx, n, o.Span, o.Rest, bySchedulerAt(s))
		if err != nil {
			return err
		}
		if err := lateness.Pass(ctx, time.Until(begin.Add(o.Span/2))); err != nil {
			return err
		}
		from = time.Now()
		if err := backfill(ctx, s, o.Count); err != nil {
			return err
		}
		if err := ticks.await(ctx, o.Count, latenessLimit); err != nil {
			return err
		}
		to = time.Now()
		e.Took = to.Sub(from)
		return starts.Wait(ctx, time.Until(begin.Add(o.Span))+latenessLimit)
	})
	if busy, ok := errors.AsType[*leftOut](err); ok {
		e.Busy = busy.Error()
		t.Tell(e)
		return nil
	}
	if err != nil {
		return err
	}
	return o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		tasks, err := lateness.Tasks(ctx, s, latenessTag)
		var alone, beside []delaytask.TaskRow
		for i := range tasks {
			switch due := tasks[i].Expected; {
			case due.Before(from):
				alone = append(alone, tasks[i])
			case due.Before(to):
				beside = append(beside, tasks[i])
			}
		}
		e.Alone, e.Judgement = lateness.Judge(alone, starts, 0), lateness.Judge(beside, starts, 0)
		t.Tell(e)
		return err
	})
}

// backfill runs n past ticks of a schedule that has no other runs.
func backfill(ctx context.Context, s *delaytask.Scheduler, n int) error {
	const name, period = "bench", time.Minute
	_, err := s.SaveSchedule(ctx, name, delaytask.Every(period), scheduleTag, benchBody)
	if err != nil {
		return err
	}
	if err := s.PauseSchedule(ctx, name, "only its past is of interest"); err != nil {
		return err
	}
	last := time.Now().Truncate(period)
	_, err = s.Backfill(ctx, name, last.Add(-time.Duration(n-1)*period), last, backfilledAtOnce)
	return err
}
