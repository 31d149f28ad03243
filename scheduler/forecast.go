package scheduler

import (
	"cmp"
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/forecast"
	"github.com/delaytask/delaytask/report"
)

// Forecast returns how many pending tasks are overdue, and how many fall due in each step of a span, by tag. Ticks of
// schedules that have no task yet are in it, unless their schedule is paused. A retry counts from its next attempt on.
//
// It takes a connection for 0.2 s at most, however many tasks there are, and each number says what it is worth. Small
// tags are counted. MySQL and MariaDB estimate large ones, and SQLite counts them up to a bound.
//
// It returns [delaytask.ErrInvalidTag], and [delaytask.ErrInvalidOption] for a span that is none.
func (s *Scheduler) Forecast(ctx context.Context, f report.ForecastFilter) (report.Forecast, error) {
	if err := s.enter(ctx); err != nil {
		return report.Forecast{}, err
	}
	if f.Tag != "" && !delaytask.ValidTag(f.Tag) {
		return report.Forecast{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, f.Tag)
	}
	q := forecast.Query{Tag: f.Tag, Span: cmp.Or(f.Span, report.ForecastHour)}
	step, err := report.ForecastStep(q.Span)
	if err != nil {
		return report.Forecast{}, err
	}
	reading, err := s.store.Now(ctx)
	if err != nil {
		return report.Forecast{}, fmt.Errorf("read the database's clock: %w", err)
	}
	q.Now, q.Step = reading.Time, step
	found, err := forecast.Read(ctx, s.store, q)
	if err != nil {
		return report.Forecast{}, fmt.Errorf("forecast: %w", err)
	}
	return found, nil
}
