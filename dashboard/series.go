package dashboard

import (
	"encoding/json"
	"time"

	"github.com/delaytask/delaytask/report"
)

// seriesChart is a chart over time, as script draws it. A value that is nil is a gap.
type seriesChart struct {
	Times  []int64      `json:"times"` // in seconds
	From   int64        `json:"from"`
	To     int64        `json:"to"`
	Names  []string     `json:"names"`
	Colors []string     `json:"colors,omitempty"`
	Values [][]*float64 `json:"values"` // of each name
	Log    bool         `json:"log,omitempty"`
	Sinh   bool         `json:"arcsinh,omitempty"`
	Unit   string       `json:"unit,omitempty"`
	Marks  []chartMark  `json:"marks,omitempty"`
}

// chartMark is a sign at a moment.
type chartMark struct {
	At   int64  `json:"at"`
	Sign string `json:"sign"`
}

// JSON is the chart for a page's attribute.
func (c seriesChart) JSON() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

type chartLine struct {
	name, color string
	of          func(report.SeriesPoint) *float64
}

// newSeriesChart makes a value of each line for each span of the series, also where the series has no point.
func newSeriesChart(s report.Series, lines ...chartLine) seriesChart {
	c := seriesChart{From: s.From.Unix(), To: s.To.Unix(), Values: make([][]*float64, len(lines))}
	for _, l := range lines {
		c.Names, c.Colors = append(c.Names, l.name), append(c.Colors, l.color)
	}
	for _, m := range s.Marks {
		c.Marks = append(c.Marks, chartMark{m.Time.Unix(), markSigns[m.Kind]})
	}
	if s.Span <= 0 {
		return c
	}
	points := map[int64]report.SeriesPoint{}
	for _, p := range s.Points {
		points[p.Start.Unix()] = p
	}
	for at := s.From.Truncate(s.Span); at.Before(s.To); at = at.Add(s.Span) {
		c.Times = append(c.Times, at.Unix())
		for i, l := range lines {
			c.Values[i] = append(c.Values[i], l.of(points[at.Unix()]))
		}
	}
	return c
}

var markSigns = map[report.MarkKind]string{
	report.MarkJoined: "+", report.MarkLeft: "−", report.MarkLost: "✕", report.MarkPaused: "‖",
	report.MarkResumed: "▶", report.MarkFailover: "⇄",
}

// MarkSign is the sign of a mark in a chart.
func (*view) MarkSign(m report.SeriesMark) string { return markSigns[m.Kind] }

// lateChart is the lateness of a series. A gap stays a gap.
func lateChart(s report.Series) seriesChart {
	ms := func(of func(report.SeriesPoint) time.Duration) func(report.SeriesPoint) *float64 {
		return func(p report.SeriesPoint) *float64 {
			if p.Started == 0 {
				return nil
			}
			return new(max(float64(of(p))/float64(time.Millisecond), 0.001)) // a logarithmic axis has no 0
		}
	}
	c := newSeriesChart(s,
		chartLine{"p50", "--executing", ms(func(p report.SeriesPoint) time.Duration { return p.P50 })},
		chartLine{"p99", "--overdue", ms(func(p report.SeriesPoint) time.Duration { return p.P99 })},
		chartLine{"max", "--failed", ms(func(p report.SeriesPoint) time.Duration { return p.Max })})
	c.Log, c.Unit = true, "ms"
	return c
}

// ResultChart is the results of a series. Where nothing was counted nothing has ended.
func (v *view) ResultChart(s report.Series) seriesChart {
	count := func(of func(report.SeriesPoint) int64) func(report.SeriesPoint) *float64 {
		return func(p report.SeriesPoint) *float64 { return new(float64(of(p))) }
	}
	c := newSeriesChart(s,
		chartLine{v.T("status.completed"), "--completed",
			count(func(p report.SeriesPoint) int64 { return p.Completed })},
		chartLine{v.T("tag.retried"), "--overdue", count(func(p report.SeriesPoint) int64 { return p.Retried })},
		chartLine{v.T("status.failed"), "--failed", count(func(p report.SeriesPoint) int64 { return p.Failed })},
		chartLine{v.T("tag.lost"), "--cancelled", count(func(p report.SeriesPoint) int64 { return p.Lost })})
	c.Sinh = true // few failures are seen beside many results
	return c
}
