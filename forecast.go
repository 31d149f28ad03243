package delaytask

import (
	"cmp"
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/forecast"
	"github.com/delaytask/delaytask/processor"
)

// Forecast is how many tasks are overdue at a moment, and how many fall due in each step after it.
type Forecast = processor.Forecast

// ForecastFilter selects what is forecast.
type ForecastFilter = processor.ForecastFilter

// TagForecast is the forecast of one tag.
type TagForecast = processor.TagForecast

// DueTasks is how many tasks fall due in a step.
type DueTasks = processor.DueTasks

// The spans of a forecast: by the minute, by the quarter of an hour, and by six hours.
const (
	ForecastHour  = processor.ForecastHour
	ForecastDay   = processor.ForecastDay
	ForecastMonth = processor.ForecastMonth
)

// Forecast returns how many pending tasks are overdue, and how many fall due in each step of a span, by tag. Ticks of
// schedules that have no task yet are in it, unless their schedule is paused. A retry counts from its next attempt on.
//
// It takes a connection for 0.2 s at most, however many tasks there are, and each number says what it is worth. Small
// tags are counted. MySQL and MariaDB estimate large ones, and SQLite counts them up to a bound.
//
// It returns [ErrInvalidTag], and [ErrInvalidOption] for a span that is none.
func (s *Scheduler) Forecast(ctx context.Context, f ForecastFilter) (Forecast, error) {
	if err := s.enter(ctx); err != nil {
		return Forecast{}, err
	}
	if f.Tag != "" && !processor.ValidTag(f.Tag) {
		return Forecast{}, fmt.Errorf("%w: got %.140q", ErrInvalidTag, f.Tag)
	}
	q := forecast.Query{Tag: f.Tag, Span: cmp.Or(f.Span, ForecastHour)}
	step, err := processor.ForecastStep(q.Span)
	if err != nil {
		return Forecast{}, err
	}
	reading, err := s.store.Now(ctx)
	if err != nil {
		return Forecast{}, fmt.Errorf("read the database's clock: %w", err)
	}
	q.Now, q.Step = reading.Time, step
	found, err := forecast.Read(ctx, s.store, q)
	if err != nil {
		return Forecast{}, fmt.Errorf("forecast: %w", err)
	}
	return found, nil
}
