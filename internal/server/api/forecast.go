package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

type forecastInput struct {
	Span string `query:"span" doc:"1h by the minute, 24h by the quarter of an hour, or 30d by six hours; default 1h"`
	Tag  string `query:"tag" doc:"Only this tag"`
}

func (a *API) forecastOperation() {
	huma.Register(a.spec, a.perTag(a.operation(http.MethodGet, "/v1/forecast", "forecast",
		"Tell how many tasks are overdue and how many fall due",
		"By tag, ticks of schedules included. It takes the database for 0.2 s at most: small tags are counted, and of "+
			"large ones the number is about right, or at least so much.", groupOperate)), a.forecast)
}

func (a *API) forecast(ctx context.Context, in *forecastInput) (*output[wire.Forecast], error) {
	filter := report.ForecastFilter{Tag: in.Tag}
	if in.Span != "" {
		var span wire.Duration
		if err := span.UnmarshalText([]byte(in.Span)); err != nil || span == 0 {
			return nil, a.problem(fmt.Errorf("%w: span: want 1h, 24h or 30d, got %.40q", delaytask.ErrInvalidOption,
				in.Span))
		}
		filter.Span = span.Std()
	}
	return inRoom(ctx, a, tagsRoom, func() (wire.Forecast, error) {
		found, err := a.view(ctx, RawInput{}).Forecast(ctx, filter)
		return wire.FromForecast(&found), err
	})
}
