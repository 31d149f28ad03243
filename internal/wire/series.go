package wire

import (
	"time"

	"github.com/delaytask/delaytask/report"
)

// Series is what all processes have counted over time.
type Series struct {
	Tag    string        `json:"tag,omitempty" doc:"Absent: all tags together"`
	SpanMS int64         `json:"span_ms" doc:"Of each point: a minute or an hour"`
	From   Time          `json:"from,omitzero" doc:"Absent in an overview without its history"`
	Until  Time          `json:"to,omitzero" doc:"Likewise"`
	Points []SeriesPoint `json:"points" doc:"In order; spans of which nothing was counted are left out"`
	Marks  []SeriesMark  `json:"marks" doc:"What may explain a change, in order"`
}

// SeriesPoint is what has happened within a span.
type SeriesPoint struct {
	Start     Time            `json:"start"`
	Completed int64           `json:"completed"`
	Retried   int64           `json:"retried" doc:"Attempts that failed and that another one follows"`
	Failed    int64           `json:"failed" doc:"Tasks that have failed for good"`
	Lost      int64           `json:"lost" doc:"Leases whose executor was gone; the tasks run again"`
	Lateness  *SeriesLateness `json:"lateness_ms,omitempty" doc:"Absent where no first attempt started"`
}

// SeriesLateness tells in milliseconds how late first attempts started.
type SeriesLateness struct {
	Samples int64   `json:"samples"`
	P50     float64 `json:"p50" doc:"Near the real one"`
	P99     float64 `json:"p99" doc:"Near the real one"`
	Max     float64 `json:"max" doc:"Exact"`
}

// SeriesMark is something that may explain a change.
type SeriesMark struct {
	Time Time            `json:"time"`
	Kind report.MarkKind `json:"kind" doc:"A node joined, left or lost; a tag paused or resumed; a failover"`
	Name string          `json:"name,omitempty" doc:"Of the node or the server; of a pause or its end, who made it"`
	Tag  string          `json:"tag,omitempty"`
}

// FromSeries is what was counted over time in JSON, without its tag.
func FromSeries(s *report.Series) Series {
	return Series{
		SpanMS: s.Span.Milliseconds(), From: Time(s.From), Until: Time(s.To),
		Points: each(s.Points, func(p *report.SeriesPoint) SeriesPoint {
			return SeriesPoint{
				Start: Time(p.Start), Completed: p.Completed, Retried: p.Retried, Failed: p.Failed, Lost: p.Lost,
				Lateness: fromSeriesLateness(p.Started, p.P50, p.P99, p.Max),
			}
		}),
		Marks: each(s.Marks, func(m *report.SeriesMark) SeriesMark {
			return SeriesMark{Time: Time(m.Time), Kind: m.Kind, Name: m.Name, Tag: m.Tag}
		}),
	}
}

// To is the series as Go has it.
func (s *Series) To() report.Series {
	return report.Series{
		Span: millis(s.SpanMS), From: s.From.Std(), To: s.Until.Std(),
		Points: each(s.Points, func(p *SeriesPoint) report.SeriesPoint {
			point := report.SeriesPoint{
				Start: p.Start.Std(), Completed: p.Completed, Retried: p.Retried, Failed: p.Failed, Lost: p.Lost,
			}
			point.Started, point.P50, point.P99, point.Max = p.Lateness.to()
			return point
		}),
		Marks: each(s.Marks, func(m *SeriesMark) report.SeriesMark {
			return report.SeriesMark{Time: m.Time.Std(), Kind: m.Kind, Name: m.Name, Tag: m.Tag}
		}),
	}
}

// fromSeriesLateness is nil where no first attempt started.
func fromSeriesLateness(started int64, p50, p99, most time.Duration) *SeriesLateness {
	if started == 0 {
		return nil
	}
	return &SeriesLateness{
		Samples: started, P50: Milliseconds(p50), P99: Milliseconds(p99), Max: Milliseconds(most),
	}
}

func (l *SeriesLateness) to() (started int64, p50, p99, most time.Duration) {
	if l == nil {
		return 0, 0, 0, 0
	}
	return l.Samples, exact(l.P50), exact(l.P99), exact(l.Max)
}
