package view

import (
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Forecast is a forecast in JSON, with its total.
func Forecast(f *report.Forecast) wire.Forecast {
	v := wire.Forecast{
		At: wire.Time(f.At), Start: wire.Time(f.Start), StepMS: f.Step.Milliseconds(), Steps: f.Steps,
		Tags: make([]wire.TagForecast, len(f.Tags)), LeftOut: f.LeftOut,
	}
	total := f.Total()
	v.Total = tagForecast(f, &total)
	for i := range f.Tags {
		v.Tags[i] = tagForecast(f, &f.Tags[i])
	}
	return v
}

func tagForecast(f *report.Forecast, t *report.TagForecast) wire.TagForecast {
	v := wire.TagForecast{
		Tag: t.Tag, Overdue: dueTasks(t.Overdue), Sum: dueTasks(t.Sum()), Due: []wire.DueStep{},
	}
	for i, due := range t.Due {
		if due == (report.DueTasks{Precision: report.Exact}) {
			continue
		}
		from := f.Start.Add(time.Duration(i) * f.Step)
		v.Due = append(v.Due, wire.DueStep{Step: i, From: wire.Time(from), DueTasks: dueTasks(due)})
	}
	return v
}

func dueTasks(d report.DueTasks) wire.DueTasks {
	return wire.DueTasks{Tasks: d.Tasks, Ticks: d.Ticks, Precision: string(d.Precision)}
}
