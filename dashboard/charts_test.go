package dashboard

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/report"
)

func TestAChartOfLoadKeepsItsScale(t *testing.T) {
	t.Parallel()
	f := report.Forecast{Start: time.Unix(0, 0), Step: time.Minute, Steps: 4}
	exact := func(n, ticks int64) report.DueTasks {
		return report.DueTasks{Tasks: n, Ticks: ticks, Precision: report.Exact}
	}
	for name, c := range map[string]struct {
		overdue int64
		due     []report.DueTasks
		height  int
		over    bool
		heights []int
		ticks   int
	}{
		"nothing":           {0, make([]report.DueTasks, 4), 0, false, nil, 0},
		"overdue alone":     {9, make([]report.DueTasks, 4), 100, false, nil, 0},
		"little overdue":    {5, []report.DueTasks{exact(10, 0), {}, exact(5, 2), {}}, 50, false, []int{100, 50}, 0},
		"much is overdue":   {15, []report.DueTasks{exact(10, 10), {}, {}, {}}, 100, false, []int{66}, 66},
		"far more overdue":  {9000, []report.DueTasks{exact(10, 1), {}, {}, {}}, 100, true, []int{50}, 5},
		"one beside a pile": {0, []report.DueTasks{exact(1, 0), exact(9999, 0), {}, {}}, 0, false, []int{1, 100}, 0},
	} {
		chart := newDueChart(&f, report.TagForecast{Overdue: exact(c.overdue, 0), Due: c.due})
		var heights []int
		for _, bar := range chart.Bars {
			heights = append(heights, bar.Height)
		}
		if chart.Height != c.height || chart.Over != c.over || !reflect.DeepEqual(heights, c.heights) ||
			len(chart.Bars) > 0 && chart.Bars[0].Ticks != c.ticks {
			t.Errorf("%s: overdue %d, over %t, %+v", name, chart.Height, chart.Over, chart.Bars)
		}
	}
}

func TestAHistogramStandsOnPowersOfTen(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(i+1)*100*time.Microsecond)
	}
	all = append(all, 0, 2*time.Minute)
	h := histogramOf(all)
	if h.Started != 102 || h.P50 != 5*time.Millisecond || h.P99 != 10*time.Millisecond || h.Max != 2*time.Minute {
		t.Errorf("%d: %v, %v, %v", h.Started, h.P50, h.P99, h.Max)
	}
	n, end := int64(0), 0
	for _, bar := range h.Bars {
		if bar.X < end || bar.X+bar.Width > lateWidth || bar.Y+bar.Height != chartHeight {
			t.Errorf("a bar overlaps or stands outside: %+v", bar)
		}
		n, end = n+bar.N, bar.X+bar.Width
	}
	last := len(h.Axis) - 1
	if n != 102 || h.Axis[0] != time.Microsecond || h.Axis[last] != 1000*time.Second || h.End > lateWidth {
		t.Errorf("%d in bars, from %v to %v", n, h.Axis[0], h.Axis[last])
	}
}

func TestNoMomentIsTooFarAway(t *testing.T) {
	t.Parallel()
	v := &view{settings: settings{Lang: "en", zone: time.UTC}, Now: time.Now()}
	for year, want := range map[int]string{2: "106751 d ago", 1700: "106751 d ago", 9999: "in 106751 d"} {
		if got := v.At(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)).Away; !strings.Contains(got, want) {
			t.Errorf("the year %d is %q, want %q", year, got, want)
		}
	}
	if got := v.Span(math.MinInt64); got != "-106751 d" {
		t.Errorf("the longest duration backwards is %q", got)
	}
}
