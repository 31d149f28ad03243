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
	overview
	Late  seriesChart
	Chart dueChart // of what falls due
}

// overview is what one user may see of what was read for all.
type overview struct{ delaytask.Overview }

// Status is that of the answer: a page whose database is away is shown, and says so.
func (o overview) Status() int {
	if o.Stale != "" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// overview shows the first page.
func (v *view) overview() (any, error) {
	found, err := v.readOverview()
	if err != nil {
		return nil, err
	}
	shown := overviewPage{overview: found, Late: lateChart(found.Series)}
	if len(found.Due) > 0 {
		next := delaytask.Forecast{Start: found.DueStart, Step: time.Minute, Steps: len(found.Due)}
		shown.Chart = newDueChart(&next, delaytask.TagForecast{Overdue: found.Totals.Overdue, Due: found.Due})
	}
	for i := range shown.Attention {
		f := &shown.Attention[i]
		f.Text, f.Error = v.Redacted(f.Tag, f.Text), v.Redacted(f.Tag, f.Error)
		if strings.HasSuffix(f.Text, f.Error) { // only a long one is not there as a whole
			f.Error = ""
		}
	}
	return shown, nil
}

// readOverview returns what was read for all viewers, as far as the user may see it.
func (v *view) readOverview() (overview, error) {
	f := delaytask.OverviewFilter{
		Errors: func(tag string) bool { return v.Caller.May(access.Read, tag) },
	}
	if !v.allTags(access.Observe) {
		f.Sees = func(tag string) bool { return v.Caller.May(access.Observe, tag) }
	}
	found, err := v.scheduler.OverviewFor(v.r.Context(), f)
	return overview{found}, err
}

// alarming are findings because of which tasks are late or lost now. The others can wait for the morning.
var alarming = []delaytask.FindingCode{
	delaytask.FindingClockHeld, delaytask.FindingUnserved, delaytask.FindingLeaseOver, delaytask.FindingRowsLocked,
	delaytask.FindingOverdue, delaytask.FindingHanging, delaytask.FindingFailing,
}

// Alarming reports whether a finding cannot wait.
func (*view) Alarming(code delaytask.FindingCode) bool { return slices.Contains(alarming, code) }

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
