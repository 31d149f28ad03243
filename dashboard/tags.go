package dashboard

import (
	"slices"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// tagsPage is all tags that the user sees.
type tagsPage struct {
	overview
	Did string
	Tag string // that it was done with
}

// tags shows all tags, as the overview has read them. Which are paused is read anew, so that a pause shows at once.
func (v *view) tags() (any, error) {
	found, err := v.readOverview()
	if err != nil {
		return nil, err
	}
	if found.Stale == "" {
		paused, err := v.paused()
		if err != nil {
			return nil, err
		}
		for i := range found.Tags {
			found.Tags[i].Paused = paused[found.Tags[i].Tag].Paused
		}
	}
	return tagsPage{overview: found, Did: v.did.Get("did"), Tag: v.did.Get("tag")}, nil
}

// paused reads which tags are paused.
func (v *view) paused() (map[string]row.TagState, error) {
	states, _, err := v.store.Tags(v.r.Context())
	if err != nil {
		return nil, err
	}
	paused := make(map[string]row.TagState, len(states))
	for _, s := range states {
		paused[s.Tag] = s
	}
	return paused, nil
}

// statusCount is how many tasks a tag has in a status.
type statusCount struct {
	Status delaytask.Status
	Tasks  int64
	More   bool // than that
}

// Count is how many tasks a tag has in a status.
func (*view) Count(t report.TagOverview, status delaytask.Status) statusCount {
	return statusCount{status, t.Counts[status], slices.Contains(t.Capped, status)}
}

// tagHour is what a tag has ended within the last hour, and a drawing of both by its steps in the same scale.
type tagHour struct {
	Completed, Failed int64
	Ended, Fails      string
}

// Hour adds up and draws the last hour of a tag.
func (*view) Hour(t report.TagOverview) (h tagHour) {
	ended, failed := make([]int64, len(t.LastHour)), make([]int64, len(t.LastHour))
	for i, step := range t.LastHour {
		h.Completed, h.Failed = h.Completed+step.Completed, h.Failed+step.Failed
		ended[i], failed[i] = step.Completed+step.Failed, step.Failed
	}
	h.Ended, h.Fails = spark(ended, highest(ended)), spark(failed, highest(ended))
	return h
}

// Next is what falls due of a tag within the next hour.
func (*view) Next(t report.TagOverview) report.DueTasks {
	return report.TagForecast{Due: t.Due}.Sum()
}

// Coming draws what falls due of a tag in the steps of the next hour.
func (*view) Coming(t report.TagOverview) string {
	due := make([]int64, len(t.Due))
	for i, d := range t.Due {
		due[i] = d.Tasks
	}
	return spark(due, highest(due))
}

// Names lists processes in a line.
func (*view) Names(nodes []report.NodeRef) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return strings.Join(names, ", ")
}
