package dashboard

import (
	"encoding/json"
	"time"

	"github.com/delaytask/delaytask"
)

// seriesChart is a chart over time, as script draws it. A value that is nil is a gap.
type seriesChart struct {
	Times  []int64      `json:"times"` // in seconds
	Names  []string     `json:"names"`
	Values [][]*float64 `json:"values"` // of each name
	Log    bool         `json:"log"`
	Unit   string       `json:"unit"`
}

// JSON is the chart for a page's attribute.
func (c seriesChart) JSON() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

// lateChart is the lateness of a series. A gap stays a gap.
func lateChart(s delaytask.Series) seriesChart {
	c := seriesChart{Names: []string{"p50", "p99", "max"}, Log: true, Unit: "ms", Values: make([][]*float64, 3)}
	points := map[int64]delaytask.SeriesPoint{}
	for _, p := range s.Points {
		points[p.Start.Unix()] = p
	}
	if s.Span <= 0 {
		return c
	}
	for at := s.From.Truncate(s.Span); at.Before(s.To); at = at.Add(s.Span) {
		c.Times = append(c.Times, at.Unix())
		p := points[at.Unix()]
		for i, d := range []time.Duration{p.P50, p.P99, p.Max} {
			var ms *float64
			if p.Started > 0 {
				ms = new(max(float64(d)/float64(time.Millisecond), 0.01)) // a logarithmic axis has no 0
			}
			c.Values[i] = append(c.Values[i], ms)
		}
	}
	return c
}
