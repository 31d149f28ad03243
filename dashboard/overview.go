package dashboard

import (
	"net/http"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	insight "github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/report"
)

// overviewPage says what needs attention, and how all stands.
type overviewPage struct {
	overview
	Findings []finding
	Late     seriesChart
	Chart    dueChart // of what falls due
	Clock    time.Duration
}

// What a page lists at most: the tags that have been overdue for longest, and the most urgent findings.
const (
	mostTags     = 500
	mostFindings = 100
)

// finding is a finding with its sentences, which each reader gets in another language.
type finding struct {
	report.Finding
	Words, ToDo sentence.Sentence
}

// overview is what one user may see of what was read for all.
type overview struct {
	report.Overview
}

// Status is the status of the answer: a page whose database is away is shown, and says so.
func (o overview) Status() int {
	if o.Stale != "" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// Lacks reports whether a part could not be read, so that its numbers are not known.
func (o overview) Lacks(part report.OverviewPart) bool {
	return slices.ContainsFunc(o.Missing, func(m report.MissingPart) bool { return m.Part == part })
}

// overview shows the first page.
func (v *view) overview() (any, error) {
	found, err := v.readOverview()
	if err != nil {
		return nil, err
	}
	shown := overviewPage{overview: found, Late: lateChart(found.Series)}
	if len(found.Due) > 0 {
		next := report.Forecast{Start: found.DueStart, Step: time.Minute, Steps: len(found.Due)}
		shown.Chart = newDueChart(&next, report.TagForecast{Overdue: found.Totals.Overdue, Due: found.Due})
	}
	if width, known := core.Of(v.scheduler).ClockWidth(); known {
		shown.Clock = atMost(width)
	}
	for _, f := range shown.Attention {
		text, do := insight.Words(&f)
		if len(f.Error) <= insight.MostError { // the sentence has it as a whole
			f.Error = ""
		}
		f.Error = v.Redacted(f.Tag, f.Error)
		shown.Findings = append(shown.Findings, finding{f, text, do})
	}
	return shown, nil
}

// atMost rounds up to 1, 2 or 5 of a power of ten, so that a page does not change with each reading of the clock.
func atMost(d time.Duration) time.Duration {
	for unit := 10 * time.Microsecond; unit < time.Hour; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if d <= n*unit {
				return n * unit
			}
		}
	}
	return d
}

// readOverview returns what was read for all viewers, as far as the user may see it.
func (v *view) readOverview() (overview, error) {
	found, err := v.look().Overview(v.r.Context(), mostTags, mostFindings)
	return overview{found}, err
}

// alarming are findings that make tasks late or lost now. The others can wait for the morning.
var alarming = []report.FindingCode{
	report.FindingTwoDatabases, report.FindingReplica, report.FindingClockHeld, report.FindingUnserved,
	report.FindingLeaseOver,
	report.FindingRowsLocked, report.FindingOverdue, report.FindingHanging, report.FindingFailing,
}

// Alarming reports whether a finding cannot wait.
func (*view) Alarming(code report.FindingCode) bool { return slices.Contains(alarming, code) }

// StatusOf is the status of the tasks that a finding is about.
func (*view) StatusOf(code report.FindingCode) string {
	switch code {
	case report.FindingFailing:
		return string(delaytask.Failed)
	case report.FindingLeaseOver, report.FindingHanging:
		return string(delaytask.Executing)
	default:
		return string(delaytask.Pending)
	}
}
