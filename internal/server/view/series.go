package view

import (
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Series is what was counted over time.
func Series(tag string, s *report.Series) wire.Series {
	v := wire.Series{
		Tag: tag, SpanMS: s.Span.Milliseconds(), From: wire.Time(s.From), To: wire.Time(s.To),
		Points: make([]wire.SeriesPoint, len(s.Points)), Marks: make([]wire.SeriesMark, len(s.Marks)),
	}
	for i, p := range s.Points {
		v.Points[i] = wire.SeriesPoint{
			Start: wire.Time(p.Start), Completed: p.Completed, Retried: p.Retried, Failed: p.Failed, Lost: p.Lost,
		}
		if p.Started > 0 {
			v.Points[i].Lateness = &wire.SeriesLateness{
				Samples: p.Started, P50: Milliseconds(p.P50), P99: Milliseconds(p.P99), Max: Milliseconds(p.Max),
			}
		}
	}
	for i, m := range s.Marks {
		v.Marks[i] = wire.SeriesMark{Time: wire.Time(m.Time), Kind: string(m.Kind), Name: m.Name, Tag: m.Tag}
	}
	return v
}
