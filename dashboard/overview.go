package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
)

// overviewPage says what needs attention, and how all stands.
type overviewPage struct {
	delaytask.Overview
	Late  seriesChart
	Chart dueChart // of what falls due
}

// Status is that of the answer: a page whose database is away is shown, and says so.
func (p overviewPage) Status() int {
	if p.Stale != "" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// overview shows the first page.
func (v *view) overview() (any, error) {
	f := delaytask.OverviewFilter{
		Errors: func(tag string) bool { return v.Caller.May(access.Read, tag) },
	}
	if !v.allTags(access.Observe) {
		f.Sees = func(tag string) bool { return v.Caller.May(access.Observe, tag) }
	}
	found, err := v.scheduler.OverviewFor(v.r.Context(), f)
	if err != nil {
		return nil, err
	}
	shown := overviewPage{Overview: found, Late: lateChart(found.Series)}
	if len(found.Due) > 0 {
		next := delaytask.Forecast{Start: found.DueStart, Step: time.Minute, Steps: len(found.Due)}
		shown.Chart = newDueChart(&next, delaytask.TagForecast{Overdue: found.Totals.Overdue, Due: found.Due})
	}
	for i := range shown.Attention {
		f := &shown.Attention[i]
		f.Text, f.Error = v.redacted(f.Tag, f.Text), v.redacted(f.Tag, f.Error)
		if strings.HasSuffix(f.Text, f.Error) { // only a long one is not there as a whole
			f.Error = ""
		}
	}
	return shown, nil
}

// alarming are findings because of which tasks are late or lost now. The others can wait for the morning.
var alarming = []delaytask.FindingCode{
	delaytask.FindingClockHeld, delaytask.FindingUnserved, delaytask.FindingLeaseOver, delaytask.FindingRowsLocked,
	delaytask.FindingOverdue, delaytask.FindingHanging, delaytask.FindingFailing,
}

// Alarming reports whether a finding cannot wait.
func (*view) Alarming(code delaytask.FindingCode) bool { return slices.Contains(alarming, code) }

// CountOf is how many tasks of a status a tag has.
func (v *view) CountOf(t delaytask.TagOverview, status delaytask.Status) string {
	text := v.N(t.Counts[status])
	if slices.Contains(t.Capped, status) {
		text += "+"
	}
	return text
}

// Hour draws what a tag has ended in the steps of the last hour.
func (*view) Hour(t delaytask.TagOverview) string {
	return drawn(len(t.LastHour), func(i int) int64 { return t.LastHour[i].Completed + t.LastHour[i].Failed })
}

// Coming draws what falls due of a tag in the steps of the next hour.
func (*view) Coming(t delaytask.TagOverview) string {
	return drawn(len(t.Due), func(i int) int64 { return t.Due[i].Tasks })
}

func drawn(n int, value func(i int) int64) string {
	values := make([]int64, n)
	for i := range values {
		values[i] = value(i)
	}
	if n == 0 || slices.Max(values) == 0 {
		return ""
	}
	return spark(values, slices.Max(values))
}

// StatusOf is the status of the tasks that a finding is about.
func (*view) StatusOf(code delaytask.FindingCode) string {
	switch code {
	case delaytask.FindingFailing:
		return string(delaytask.Failed)
	case delaytask.FindingLeaseOver, delaytask.FindingHanging:
		return string(delaytask.Executing)
	default:
		return string(delaytask.Pending)
	}
}
