package client

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Forecast returns how many pending tasks are overdue, and how many fall due in each step of a span, by tag. Ticks of
// schedules that have no task yet are in it. Each number says what it is worth.
//
// It returns ErrInvalidTag, and ErrInvalidOption for an invalid span.
func (c *Client) Forecast(ctx context.Context, f report.ForecastFilter) (report.Forecast, error) {
	if err := c.enter(ctx); err != nil {
		return report.Forecast{}, err
	}
	if f.Tag != "" && !delaytask.ValidTag(f.Tag) {
		return report.Forecast{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, f.Tag)
	}
	span := cmp.Or(f.Span, report.ForecastHour)
	if _, err := report.ForecastStep(span); err != nil {
		return report.Forecast{}, err
	}
	query := url.Values{"span": {span.String()}}
	if f.Tag != "" {
		query.Set("tag", f.Tag)
	}
	var answer wire.Forecast
	err := c.read(ctx, "/v1/forecast?"+query.Encode(), "forecast", &answer)
	return answer.To(), err
}
