package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/child"
	"github.com/delaytask/delaytask/internal/lateness"
	"github.com/delaytask/delaytask/processor"
)

const (
	latenessTag   = "bench.late"
	latenessLimit = 30 * time.Second       // after the last is due
	latenessSlack = 500 * time.Millisecond // by which saves may take longer than expected
	savedAtOnce   = 1000
	triedSaves    = 5 * savedAtOnce // to see how long saving takes
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
	var busy string
	err := o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		if err := errors.Join(s.Register(latenessTag, note), s.Start(ctx)); err != nil {
			return err
		}
		end, ahead, err := saveAhead(ctx, s, n, o)
		if err != nil {
			return err
		}
		if ahead < o.Rest-latenessSlack {
			busy = fmt.Sprintf("this machine is too busy to be measured: saving %d tasks took longer than was to be expected, and"+
				" ended only %v before the first was due", n, ahead.Round(time.Millisecond))
			return nil
		}
		return seen.Wait(ctx, time.Until(end)+latenessLimit)
	})
	if busy != "" {
		t.Tell(lateEvent{Busy: busy})
	}
	if err != nil || busy != "" {
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

// saveAhead saves n tasks that are due at different moments of the span. That begins when, by what saves take here, all tasks have
// been saved for the rest that is asked for. It returns the span's end, and how far ahead of its begin the last save was.
func saveAhead(ctx context.Context, s *delaytask.Scheduler, n int, o order) (end time.Time, ahead time.Duration, err error) {
	tries := min(n, triedSaves)
	tried := time.Now()
	later := delaytask.Item{Tag: benchTag, Body: benchBody, Delay: farDelay}
	if err := saveChunks(ctx, s, slices.Repeat([]delaytask.Item{later}, tries)); err != nil {
		return end, 0, err
	}
	took := time.Since(tried) * time.Duration(n) / time.Duration(tries)
	begin := time.Now().Add(o.Rest + 2*took)
	items := make([]delaytask.Item, n)
	for i, moment := range lateness.Moments(n, o.Span) {
		items[i] = delaytask.Item{
			Tag: latenessTag, Body: benchBody, Options: []delaytask.Option{delaytask.WithTime(begin.Add(moment))},
		}
	}
	err = saveChunks(ctx, s, items)
	return begin.Add(o.Span), time.Until(begin), err
}

func saveChunks(ctx context.Context, s *delaytask.Scheduler, items []delaytask.Item) error {
	for chunk := range slices.Chunk(items, savedAtOnce) {
		if _, err := s.SaveDelayTasks(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}
