package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
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

// highest returns the highest of all numbers, and at least 0.
func highest(all []int64) (most int64) {
	for _, n := range all {
		most = max(most, n)
	}
	return most
}

// dueChart draws what falls due in each step, and what is overdue beside it in the same scale.
type dueChart struct {
	report.TagForecast
	Sum     report.DueTasks
	Bars    []dueBar // of the steps with due tasks
	Wide    int      // how far the steps go
	Most    report.DueTasks
	Axis    []time.Time // at equal distances
	Step    time.Duration
	Height  int             // of the bar of what is overdue
	Over    bool            // that bar would be higher than the chart
	Worth   map[string]bool // which precisions there are
	LeftOut bool
}

// dueBar is a step, in a chart that is 100 high.
type dueBar struct {
	report.DueTasks
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

func newDueChart(f *report.Forecast, due report.TagForecast) dueChart {
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

// histogram draws how many first attempts were how late, by the classes of rollups, on a logarithmic axis.
type histogram struct {
	Started       int64
	P50, P99, Max time.Duration
	Bars          []histogramBar
	Axis          []time.Duration // at equal distances: powers of ten
	X50, X99, End int             // where the lines stand
}

// histogramBar is a class, in a chart that is lateWidth wide and chartHeight high.
type histogramBar struct {
	From, To            time.Duration
	N                   int64
	X, Y, Width, Height int
}

const lateWidth = 1000

// newHistogram draws a histogram that is not empty.
func newHistogram(h row.Histogram, p50, p99, most time.Duration) *histogram {
	c := &histogram{Started: h.Count(), P50: p50, P99: p99, Max: most}
	first, last := row.LateFrom(h[0].Class), row.LateFrom(h[len(h)-1].Class+1)
	low := math.Floor(micros(first))
	high := max(math.Ceil(micros(max(last, most))), low+1)
	x := func(d time.Duration) int { return int(math.Round((micros(d) - low) / (high - low) * lateWidth)) }
	for power := low; power <= high; power++ {
		c.Axis = append(c.Axis, time.Duration(math.Round(math.Pow(10, power)))*time.Microsecond)
	}
	highest := slices.MaxFunc(h, func(a, b row.ClassCount) int { return cmp.Compare(a.N, b.N) }).N
	for _, class := range h {
		b := histogramBar{From: row.LateFrom(class.Class), To: row.LateFrom(class.Class + 1), N: class.N}
		b.X, b.Height = x(b.From), int(max(1, class.N*chartHeight/highest))
		b.Width, b.Y = max(1, x(b.To)-b.X-1), chartHeight-b.Height
		c.Bars = append(c.Bars, b)
	}
	c.X50, c.X99, c.End = x(p50), x(p99), x(most)
	return c
}

// micros is the decimal logarithm of a duration in microseconds. Nothing is taken for one microsecond.
func micros(d time.Duration) float64 { return math.Log10(max(float64(d.Microseconds()), 1)) }

// histogramOf draws durations. They are sorted.
func histogramOf(all []time.Duration) *histogram {
	slices.Sort(all)
	var h row.Histogram
	for _, late := range all {
		class := row.LateClass(late)
		if len(h) == 0 || h[len(h)-1].Class != class {
			h = append(h, row.ClassCount{Class: class})
		}
		h[len(h)-1].N++
	}
	rank := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return newHistogram(h, rank(50), rank(99), all[len(all)-1])
}

// Power writes a power of ten of microseconds.
func (*view) Power(d time.Duration) string {
	switch {
	case d >= time.Second:
		return strconv.FormatInt(int64(d/time.Second), 10) + " s"
	case d >= time.Millisecond:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + " ms"
	default:
		return strconv.FormatInt(int64(d/time.Microsecond), 10) + " µs"
	}
}
