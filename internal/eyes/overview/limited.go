package overview

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/standing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Store is what an overview reads. Its reads take no lock.
type Store interface {
	store.Forecaster
	standing.Store
	Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error)
	Nodes(ctx context.Context) ([]row.Node, row.Reading, error)
	Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error)
	Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error)
	Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error)
	FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error)
	Failures(ctx context.Context, ids []int64) ([]row.Failure, error)
	Expired(ctx context.Context, tags []string, limit int) (rows []row.Row, broken []row.Broken, err error)
	Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error)
	Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error)
	Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) ([]row.Rollup, error)
}

const (
	callsAtOnce = 2                       // each takes a connection
	callLimit   = 1500 * time.Millisecond // for a call
)

// limited passes calls on to a store, as many at once and for as long as an overview may.
type limited struct {
	Store
	permits chan struct{}
}

func newLimited(s Store) *limited { return &limited{s, make(chan struct{}, callsAtOnce)} }

// call makes one call within the limits.
func (l *limited) call(ctx context.Context, do func(context.Context) error) error {
	select {
	case l.permits <- struct{}{}:
		defer func() { <-l.permits }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return do(ctx)
}

func call[T any](ctx context.Context, l *limited, do func(context.Context) (T, error)) (found T, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		found, err = do(ctx)
		return err
	})
	return found, err
}

func (l *limited) Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		tags, look, err = l.Store.Tags(ctx)
		return err
	})
	return tags, look, err
}

func (l *limited) Nodes(ctx context.Context) (nodes []row.Node, reading row.Reading, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		nodes, reading, err = l.Store.Nodes(ctx)
		return err
	})
	return nodes, reading, err
}

func (l *limited) FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.TagCount, error) { return l.Store.FirstDue(ctx, span) })
}

func (l *limited) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.TagCount, error) { return l.Store.Oldest(ctx, status) })
}

func (l *limited) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	return call(ctx, l, func(ctx context.Context) ([]int64, error) { return l.Store.Count(ctx, pairs, most) })
}

func (l *limited) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	return call(ctx, l, func(ctx context.Context) ([][]row.Place, error) { return l.Store.Places(ctx, spans, limit) })
}

func (l *limited) Failures(ctx context.Context, ids []int64) ([]row.Failure, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.Failure, error) { return l.Store.Failures(ctx, ids) })
}

func (l *limited) Expired(
	ctx context.Context, tags []string, limit int,
) (rows []row.Row, broken []row.Broken, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		rows, broken, err = l.Store.Expired(ctx, tags, limit)
		return err
	})
	return rows, broken, err
}

func (l *limited) Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.State, error) {
		return l.Store.Orphans(ctx, tags, processes, limit)
	})
}

func (l *limited) Rollups(
	ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time,
) ([]row.Rollup, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.Rollup, error) {
		return l.Store.Rollups(ctx, span, tags, from, to)
	})
}

func (l *limited) CountDue(
	ctx context.Context, g row.DueGrid, most int, limit time.Duration,
) (counts []row.DueCount, complete bool, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		counts, complete, err = l.Store.CountDue(ctx, g, most, limit)
		return err
	})
	return counts, complete, err
}

func (l *limited) EstimateDue(ctx context.Context, g row.DueGrid) (counts []row.DueCount, known bool, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		counts, known, err = l.Store.EstimateDue(ctx, g)
		return err
	})
	return counts, known, err
}

func (l *limited) Upcoming(ctx context.Context, before row.Time, limit int) ([]row.Schedule, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.Schedule, error) {
		return l.Store.Upcoming(ctx, before, limit)
	})
}

func (l *limited) Runs(
	ctx context.Context, schedule int64, before row.Time, limit int,
) ([]row.ScheduleRun, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.ScheduleRun, error) {
		return l.Store.Runs(ctx, schedule, before, limit)
	})
}

func (l *limited) Schedules(
	ctx context.Context, f row.ScheduleFilter,
) (found []row.Schedule, broken []row.Broken, err error) {
	err = l.call(ctx, func(ctx context.Context) (err error) {
		found, broken, err = l.Store.Schedules(ctx, f)
		return err
	})
	return found, broken, err
}

func (l *limited) OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error) {
	return call(ctx, l, func(ctx context.Context) ([]row.ScheduleRun, error) {
		return l.Store.OpenRuns(ctx, schedules, limit)
	})
}
