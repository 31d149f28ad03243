package report

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
)

// The spans of a forecast. Each is divided into steps: of a minute, of a quarter of an hour, and of six hours.
const (
	ForecastHour  = time.Hour
	ForecastDay   = 24 * time.Hour
	ForecastMonth = 30 * 24 * time.Hour
)

// ForecastStep returns the length of a step of the span. It returns [delaytask.ErrInvalidOption] when there is no such
// span.
func ForecastStep(span time.Duration) (time.Duration, error) {
	switch span {
	case ForecastHour:
		return time.Minute, nil
	case ForecastDay:
		return 15 * time.Minute, nil
	case ForecastMonth:
		return 6 * time.Hour, nil
	}
	return 0, fmt.Errorf("%w: span: want 1h, 24h or 30d, got %v", delaytask.ErrInvalidOption, span)
}

// ForecastFilter selects what is forecast.
type ForecastFilter struct {
	Tag  string        // "" means every tag
	Span time.Duration // one of the spans of a forecast; 0 means [ForecastHour]
}

// Forecast is how many tasks are overdue at a moment, and how many fall due in each step after it.
type Forecast struct {
	At    time.Time     // the moment, by the database's clock
	Start time.Time     // of the first step, which has begun: a multiple of Step in UTC, at most At
	Step  time.Duration // length of a step
	Steps int
	Tags  []TagForecast // sorted; tags without due tasks are left out
	// LeftOut says that there are more tags or schedules than a forecast reads. The tags with the earliest due times
	// are in it.
	LeftOut bool
}

// TagForecast is the forecast of one tag.
type TagForecast struct {
	Tag     string
	Overdue DueTasks
	Due     []DueTasks // by step
}

// DueTasks is how many tasks fall due in a step.
type DueTasks struct {
	Tasks     int64 // the ticks included
	Ticks     int64 // of schedules, that have no task yet
	Precision Precision
}

// Precision says what a number is worth.
type Precision string

// The precisions of a forecast.
const (
	Exact   Precision = "exact"
	About   Precision = "about"    // the database's estimate
	AtLeast Precision = "at_least" // counted as far as a forecast counts
)

// Total returns the sum over all tags, with an empty tag.
func (f Forecast) Total() TagForecast {
	total := TagForecast{Overdue: DueTasks{Precision: Exact}, Due: make([]DueTasks, f.Steps)}
	for i := range total.Due {
		total.Due[i].Precision = Exact
	}
	if f.LeftOut {
		total.Overdue.Precision = AtLeast
		for i := range total.Due {
			total.Due[i].Precision = AtLeast
		}
	}
	for _, tag := range f.Tags {
		total.Overdue = total.Overdue.Plus(tag.Overdue)
		for i, due := range tag.Due {
			total.Due[i] = total.Due[i].Plus(due)
		}
	}
	return total
}

// Sum returns what falls due in all steps.
func (t TagForecast) Sum() DueTasks {
	sum := DueTasks{Precision: Exact}
	for _, due := range t.Due {
		sum = sum.Plus(due)
	}
	return sum
}

// Plus adds two numbers. The sum is worth what the worse of them is.
func (d DueTasks) Plus(other DueTasks) DueTasks {
	d.Tasks += other.Tasks
	d.Ticks += other.Ticks
	if d.Precision == Exact || other.Precision == AtLeast {
		d.Precision = other.Precision
	}
	return d
}
