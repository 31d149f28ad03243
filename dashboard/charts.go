package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
)

const (
	sparkHeight = 20
	sparkWidth  = 6 // of a bar, with the gap after it
)

// spark is the path of bars beside each other.
func spark(all []int64, most int64) string {
	var b strings.Builder
	for i, n := range all {
		if n > 0 {
			height := max(1, n*sparkHeight/most)
			fmt.Fprintf(&b, "M%d %dv%dh%dv-%dz", i*sparkWidth, sparkHeight-height, height, sparkWidth-1, height)
		}
	}
	return b.String()
}

// dueChart draws what falls due in each step, and what is overdue beside it in the same scale.
type dueChart struct {
	delaytask.TagForecast
	Sum     delaytask.DueTasks
	Bars    []dueBar // of steps in which something falls due
	Wide    int      // how far the steps go
	Most    delaytask.DueTasks
	Axis    []time.Time // at equal distances
	Step    time.Duration
	Height  int             // of the bar of what is overdue
	Over    bool            // that bar would be higher than the chart
	Worth   map[string]bool // which precisions there are
	LeftOut bool
}

// dueBar is a step, in a chart that is 100 high.
type dueBar struct {
	delaytask.DueTasks
	At           time.Time
	X, Y, Height int
	TickY, Ticks int // of what schedules add
}

const (
	chartHeight  = 100
	dueWidth     = 10 // of a step, with the gap after it
	axisParts    = 4
	mostOfHigher = 2 // times the highest step is how high the bar of what is overdue may make a chart
)

func newDueChart(f *delaytask.Forecast, due delaytask.TagForecast) dueChart {
	c := dueChart{
		TagForecast: due, Sum: due.Sum(), Wide: f.Steps * dueWidth, Step: f.Step,
		Worth: map[string]bool{string(due.Overdue.Precision): due.Overdue.Tasks > 0}, LeftOut: f.LeftOut,
	}
	for i := range axisParts + 1 {
		c.Axis = append(c.Axis, f.Start.Add(time.Duration(i*f.Steps/axisParts)*f.Step))
	}
	for _, d := range due.Due {
		c.Worth[string(d.Precision)] = c.Worth[string(d.Precision)] || d.Tasks > 0
		if d.Tasks > c.Most.Tasks {
			c.Most = d
		}
	}
	scale := max(c.Most.Tasks, min(due.Overdue.Tasks, mostOfHigher*c.Most.Tasks))
	if c.Most.Tasks == 0 {
		scale = due.Overdue.Tasks
	}
	height := func(n int64) int {
		if n <= 0 {
			return 0
		}
		return int(max(1, min(n*chartHeight/scale, chartHeight)))
	}
	c.Height, c.Over = height(due.Overdue.Tasks), due.Overdue.Tasks > scale
	for i, d := range due.Due {
		if d.Tasks <= 0 {
			continue
		}
		bar := dueBar{DueTasks: d, At: f.Start.Add(time.Duration(i) * f.Step), X: i * dueWidth, Height: height(d.Tasks)}
		bar.Ticks = min(height(d.Ticks), bar.Height)
		bar.Y, bar.TickY = chartHeight-bar.Height, chartHeight-bar.Height
		c.Bars = append(c.Bars, bar)
	}
	return c
}

// Tick formats a moment on the axis of a chart with such steps.
func (v *view) Tick(t time.Time, step time.Duration) string {
	if step > time.Hour {
		return t.In(v.zone).Format("01-02")
	}
	return t.In(v.zone).Format("15:04")
}
