package client

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// Forecast returns how many pending tasks are overdue, and how many fall due in each step of a span, by tag. Ticks of
// schedules that have no task yet are in it. Each number says what it is worth.
//
// It returns ErrInvalidTag, and ErrInvalidOption for a span that is none.
func (c *Client) Forecast(ctx context.Context, f processor.ForecastFilter) (processor.Forecast, error) {
	if err := c.enter(ctx); err != nil {
		return processor.Forecast{}, err
	}
	if f.Tag != "" && !processor.ValidTag(f.Tag) {
		return processor.Forecast{}, fmt.Errorf("%w: got %.140q", processor.ErrInvalidTag, f.Tag)
	}
	span := cmp.Or(f.Span, processor.ForecastHour)
	step, err := processor.ForecastStep(span)
	if err != nil {
		return processor.Forecast{}, err
	}
	query := url.Values{"span": {span.String()}}
	if f.Tag != "" {
		query.Set("tag", f.Tag)
	}
	var answer wire.Forecast
	if err := c.read(ctx, "/v1/forecast?"+query.Encode(), "forecast", &answer); err != nil {
		return processor.Forecast{}, err
	}
	found := processor.Forecast{
		At: answer.At.Std(), Start: answer.Start.Std(), Step: step, Steps: int(span / step),
		Tags: make([]processor.TagForecast, len(answer.Tags)), LeftOut: answer.LeftOut,
	}
	for i, t := range answer.Tags {
		due := make([]processor.DueTasks, found.Steps)
		for k := range due {
			due[k].Precision = processor.Exact
		}
		for _, step := range t.Due {
			if step.Step >= 0 && step.Step < found.Steps {
				due[step.Step] = dueTasks(step.DueTasks)
			}
		}
		found.Tags[i] = processor.TagForecast{Tag: t.Tag, Overdue: dueTasks(t.Overdue), Due: due}
	}
	return found, nil
}

func dueTasks(d wire.DueTasks) processor.DueTasks {
	return processor.DueTasks{Tasks: d.Tasks, Ticks: d.Ticks, Precision: processor.Precision(d.Precision)}
}
