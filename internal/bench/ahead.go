package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	latenessSlack = 500 * time.Millisecond // by which saves may take longer than expected
	savedAtOnce   = 1000
	triedSaves    = 20 * savedAtOnce // to see how long saving takes, checkpoints included
)

// saveAt saves up to savedAtOnce tasks of the tag, one for each moment.
type saveAt func(ctx context.Context, tag string, moments []time.Time) error

// saveAhead saves n tasks that are due at different moments of the span. The span begins a rest after the saves would
// end if they took five times as long as the first ones: a file of gigabytes has pauses. It returns the span's begin,
// and [leftOut] when saving took longer still.
func saveAhead(ctx context.Context, n int, span, rest time.Duration, save saveAt) (begin time.Time, err error) {
	tries := min(n, triedSaves)
	tried := time.Now()
	if err := save.chunks(ctx, benchTag, slices.Repeat([]time.Time{tried.Add(farDelay)}, tries)); err != nil {
		return begin, err
	}
	took := time.Since(tried) * time.Duration(n) / time.Duration(tries)
	begin = time.Now().Add(rest + 5*took)
	moments := make([]time.Time, n)
	for i, moment := range lateness.Moments(n, span) {
		moments[i] = begin.Add(moment)
	}
	if err := save.chunks(ctx, latenessTag, moments); err != nil {
		return begin, err
	}
	if ahead := time.Until(begin); ahead < rest-latenessSlack {
		return begin, &leftOut{fmt.Errorf("this machine is too busy to be measured: saving %d tasks took longer "+
			"than was to be expected, and ended only %v before the first was due", n, ahead.Round(time.Millisecond))}
	}
	return begin, nil
}

func (save saveAt) chunks(ctx context.Context, tag string, moments []time.Time) error {
	for chunk := range slices.Chunk(moments, savedAtOnce) {
		if err := save(ctx, tag, chunk); err != nil {
			return err
		}
	}
	return nil
}

func bySchedulerAt(s *delaytask.Scheduler) saveAt {
	return func(ctx context.Context, tag string, moments []time.Time) error {
		items := make([]delaytask.Item, len(moments))
		for i, at := range moments {
			items[i] = delaytask.Item{Tag: tag, Body: benchBody, Options: []delaytask.Option{delaytask.WithTime(at)}}
		}
		_, err := s.SaveDelayTasks(ctx, items)
		return err
	}
}
