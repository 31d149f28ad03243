package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

type seriesInput struct {
	Tag   string `query:"tag" doc:"Default: all tags together, for which the token needs observe on all tags"`
	Since string `query:"since" doc:"How long before its end the series begins; default 1h"`
	From  string `query:"from" doc:"When the series begins, instead of since: RFC 3339, or since 1970"`
	To    string `query:"to" doc:"When the series ends; default now"`
}

func (a *API) seriesOperation() {
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/series", "series",
		"Show results and lateness over time",
		"By the minute for the last 6 h, by the hour for 30 days. It reads few rows. A minute is there up to 10 s "+
			"after its end.", groupOperate), a.series)
}

func (a *API) series(ctx context.Context, in *seriesInput) (*output[wire.Series], error) {
	view := a.view(ctx, RawInput{})
	if err := view.MayObserve(in.Tag); err != nil {
		return nil, a.problem(err)
	}
	filter, err := in.filter()
	if err != nil {
		return nil, a.problem(err)
	}
	series, err := view.Series(ctx, filter)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.Series]{wire.FromSeries(&series)}
	out.Body.Tag = in.Tag
	return out, nil
}

func (in *seriesInput) filter() (report.SeriesFilter, error) {
	f := report.SeriesFilter{Tag: in.Tag}
	for _, p := range []struct {
		name, text string
		to         *time.Time
	}{{"from", in.From, &f.From}, {"to", in.To, &f.To}} {
		if p.text == "" {
			continue
		}
		var at wire.Moment
		if err := at.UnmarshalText([]byte(p.text)); err != nil {
			return f, fmt.Errorf("%w: %s: %w", delaytask.ErrInvalidOption, p.name, err)
		}
		*p.to = at.Std()
	}
	if in.Since != "" {
		var since wire.Duration
		if err := since.UnmarshalText([]byte(in.Since)); err != nil {
			return f, fmt.Errorf("%w: since: %w", delaytask.ErrInvalidOption, err)
		}
		if f.Since = since.Std(); f.Since == 0 {
			return f, fmt.Errorf("%w: since: want more than 0", delaytask.ErrInvalidOption)
		}
	}
	return f, nil
}
