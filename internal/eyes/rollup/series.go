package rollup

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Merge adds up the rows of all processes by the time that they are about. Rows come in its order. Times without rows
// are left out.
func Merge(rows []row.Rollup) (merged []row.Rollup) {
	var all *sum
	flush := func(begin row.Time) {
		r := all.rollup()
		r.Begin = begin
		merged = append(merged, r)
	}
	for i := range rows {
		if i > 0 && rows[i].Begin != rows[i-1].Begin {
			flush(rows[i-1].Begin)
			all = nil
		}
		if all == nil {
			all = new(sum)
		}
		all.add(&rows[i])
	}
	if all != nil {
		flush(rows[len(rows)-1].Begin)
	}
	return merged
}

// sameMark is within what time several processes mark the same.
const sameMark = time.Minute

// Marks returns the marks that are about no tag or about this one, or all where tag is "". A mark of several processes
// is there once.
func Marks(rows []row.Rollup, tag string) (marks []row.Rollup) {
	type about struct {
		mark row.Mark
		tag  string
	}
	last := map[about]row.Time{}
	for _, r := range rows {
		if tag != "" && r.Tag != "" && r.Tag != tag {
			continue
		}
		this := about{r.Mark, r.Tag}
		at, again := last[this]
		last[this] = r.Begin
		if r.Mark.Kind == report.MarkFailover && again && r.Begin.Sub(at) < sameMark {
			continue
		}
		marks = append(marks, r)
	}
	return marks
}

// Pause says since when a tag is paused, and who paused it. It is zero where that is not known.
type Pause struct {
	Since row.Time
	By    string
}

// Pauses returns the pauses of tags, by their marks in the order of time. A second pause changes nothing.
func Pauses(marks []row.Rollup) map[string]Pause {
	paused := map[string]Pause{}
	for _, m := range marks {
		switch {
		case m.Mark.Kind == report.MarkResumed:
			delete(paused, m.Tag)
		case m.Mark.Kind == report.MarkPaused && paused[m.Tag].Since.IsZero():
			paused[m.Tag] = Pause{m.Begin, m.Mark.Name}
		}
	}
	return paused
}

// Series returns merged rows as points, and marks, in their orders. It leaves out the span and the times.
func Series(merged, marks []row.Rollup) (s report.Series) {
	for _, r := range merged {
		s.Points = append(s.Points, report.SeriesPoint{
			Start: r.Begin.Std(), Completed: r.Completed, Retried: r.Retried, Failed: r.Failed, Lost: r.Lost,
			Started: r.Late.Count(), P50: r.Late.Quantile(0.5, r.Max), P99: r.Late.Quantile(0.99, r.Max), Max: r.Max,
		})
	}
	for _, r := range marks {
		s.Marks = append(s.Marks, report.SeriesMark{
			Time: r.Begin.Std(), Kind: r.Mark.Kind, Name: r.Mark.Name, Tag: r.Tag,
		})
	}
	return s
}
