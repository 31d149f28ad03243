package core

import (
	"cmp"
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/forecast"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Forecast(ctx context.Context, f report.ForecastFilter) (report.Forecast, error) {
	if err := c.enter(ctx); err != nil {
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
	reading, err := c.store.Now(ctx)
	if err != nil {
		return report.Forecast{}, fmt.Errorf("read the database's clock: %w", err)
	}
	q.Now, q.Step = reading.Time, step
	found, err := forecast.Read(ctx, c.store, q)
	if err != nil {
		return report.Forecast{}, fmt.Errorf("forecast: %w", err)
	}
	return found, nil
}
