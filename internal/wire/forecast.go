package wire

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/report"
)

// Forecast is how many tasks are overdue at a moment, and how many fall due in each step after it.
type Forecast struct {
	At      Time          `json:"at" doc:"The moment, by the database's clock"`
	Start   Time          `json:"start" doc:"Of the first step, which has begun"`
	StepMS  int64         `json:"step_ms"`
	Steps   int           `json:"steps" doc:"How many there are"`
	Total   TagForecast   `json:"total" doc:"Of all tags in the answer"`
	Tags    []TagForecast `json:"tags" doc:"Tags of which something is or falls due"`
	LeftOut bool          `json:"left_out,omitempty" doc:"There are more tags or schedules than are read"`
}

// TagForecast is the forecast of one tag.
type TagForecast struct {
	Tag     string    `json:"tag,omitempty"`
	Overdue DueTasks  `json:"overdue"`
	Sum     DueTasks  `json:"sum" doc:"Of all steps"`
	Due     []DueStep `json:"due" doc:"Steps in which nothing falls due are left out"`
}

// DueTasks is how many tasks fall due.
type DueTasks struct {
	Tasks     int64            `json:"tasks"`
	Ticks     int64            `json:"ticks,omitempty" doc:"Of these, ticks of schedules that have no task yet"`
	Precision report.Precision `json:"precision" enum:"exact,about,at_least" doc:"about: estimated; at_least: or more"`
}

// DueStep is how many tasks fall due in a step.
type DueStep struct {
	Step int  `json:"step" doc:"Its number, from 0 on"`
	From Time `json:"from" doc:"When it begins"`
	DueTasks
}

// FromForecast is a forecast in JSON, with its sums.
func FromForecast(f *report.Forecast) Forecast {
	tag := func(t *report.TagForecast) TagForecast {
		v := TagForecast{Tag: t.Tag, Overdue: DueTasks(t.Overdue), Sum: DueTasks(t.Sum()), Due: []DueStep{}}
		for i, due := range t.Due {
			if due != (report.DueTasks{Precision: report.Exact}) {
				from := f.Start.Add(time.Duration(i) * f.Step)
				v.Due = append(v.Due, DueStep{Step: i, From: Time(from), DueTasks: DueTasks(due)})
			}
		}
		return v
	}
	total := f.Total()
	return Forecast{
		At: Time(f.At), Start: Time(f.Start), StepMS: f.Step.Milliseconds(), Steps: f.Steps, Total: tag(&total),
		Tags: each(f.Tags, tag), LeftOut: f.LeftOut,
	}
}

// mostSteps is how many steps the longest forecast has.
const mostSteps = 120

// To is the forecast as Go has it.
func (f *Forecast) To() report.Forecast {
	steps := min(max(f.Steps, 0), mostSteps)
	return report.Forecast{
		At: f.At.Std(), Start: f.Start.Std(), Step: millis(f.StepMS), Steps: steps,
		Tags: each(f.Tags, func(t *TagForecast) report.TagForecast {
			due := slices.Repeat([]report.DueTasks{{Precision: report.Exact}}, steps)
			for _, step := range t.Due {
				if step.Step >= 0 && step.Step < steps {
					due[step.Step] = report.DueTasks(step.DueTasks)
				}
			}
			return report.TagForecast{Tag: t.Tag, Overdue: report.DueTasks(t.Overdue), Due: due}
		}),
		LeftOut: f.LeftOut,
	}
}
