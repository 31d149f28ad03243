package core

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Series(ctx context.Context, f report.SeriesFilter) (report.Series, error) {
	if err := c.enter(ctx); err != nil {
		return report.Series{}, err
	}
	if f.Tag != "" && f.Tag != report.OtherTags && !delaytask.ValidTag(f.Tag) {
		return report.Series{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, f.Tag)
	}
	reading, err := c.store.Now(ctx)
	if err != nil {
		return report.Series{}, fmt.Errorf("read the database's clock: %w", err)
	}
	from, to, err := seriesTimes(f, reading.Time)
	if err != nil {
		return report.Series{}, err
	}
	span := row.SpanMinute
	if reading.Time.Sub(from) > rollup.KeepMinutes {
		span = row.SpanHour
	}
	from = span.Begin(from)
	rows, err := c.store.Rollups(ctx, span, []string{f.Tag}, from, to)
	if err != nil {
		return report.Series{}, fmt.Errorf("read lateness and results over time: %w", err)
	}
	marks, err := c.store.Rollups(ctx, row.SpanMark, nil, from, to)
	if err != nil {
		return report.Series{}, fmt.Errorf("read marks: %w", err)
	}
	series := rollup.Series(rollup.Merge(rows), rollup.Marks(marks, f.Tag))
	series.Span, series.From, series.To = span.Length(), from.Std(), to.Std()
	return series, nil
}

// seriesSince is how far back a series goes where nothing is said.
const seriesSince = time.Hour

func seriesTimes(f report.SeriesFilter, now row.Time) (from, to row.Time, err error) {
	wrong := func(format string, args ...any) (row.Time, row.Time, error) {
		return 0, 0, fmt.Errorf("%w: "+format, append([]any{delaytask.ErrInvalidOption}, args...)...)
	}
	to = now
	if !f.To.IsZero() {
		to = min(row.At(f.To), now)
	}
	switch {
	case f.Since < 0:
		return wrong("since is %v, want more than 0", f.Since)
	case f.Since > 0 && !f.From.IsZero():
		return wrong("since and from exclude each other")
	case !f.From.IsZero():
		from = row.At(f.From)
	case f.Since > 0:
		from = to.Add(-f.Since)
	default:
		from = to.Add(-seriesSince)
	}
	if from >= to {
		return wrong("the series ends at %v, before it begins at %v", to.Std(), from.Std())
	}
	return min(max(from, row.SpanHour.Begin(now.Add(-rollup.KeepHours))), to), to, nil
}
