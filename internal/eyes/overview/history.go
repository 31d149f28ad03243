package overview

import (
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

const historySpan = report.OverviewSteps * report.OverviewStep

// history is what has happened within the last hour.
type history struct {
	from, until row.Time
	minutes     []row.Rollup // of all processes together, by begin and tag
	marks       []row.Rollup
	tags        map[string]*tagHistory
}

type tagHistory struct {
	hour   row.Rollup
	steps  []report.HourStep
	lately row.Rollup // within failureSpan
	minute row.Rollup // the last one
}

// retries reports whether more attempts have failed lately than tasks were completed.
func (t *tagHistory) retries() bool {
	return t != nil && t.lately.Retried > fewRetries && t.lately.Retried > t.lately.Completed
}

// historyLimit is for all that is read of the history, so that other parts have time as well.
const historyLimit = time.Second

// readHistory reads the last hour once a minute, and when a tag was paused that is not known as such.
func (r *reading) readHistory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, historyLimit)
	defer cancel()
	minute := row.SpanMinute.Begin(r.now.Add(-rollup.WrittenAfter))
	before := r.cache.history.at
	err := r.cache.history.refresh(r.now, minute.Add(time.Minute+rollup.WrittenAfter), func() (*history, error) {
		return r.readHour(ctx, minute)
	})
	if err != nil {
		return err
	}
	return r.readPauses(ctx, r.cache.history.at != before)
}

func (r *reading) readHour(ctx context.Context, until row.Time) (*history, error) {
	h := &history{from: until.Add(-historySpan), until: until}
	rows, err := r.from.Rollups(ctx, row.SpanMinute, nil, h.from, until)
	if err != nil {
		return nil, err
	}
	if h.marks, err = r.from.Rollups(ctx, row.SpanMark, nil, h.from, r.now); err != nil {
		return nil, err
	}
	h.add(rows)
	return h, nil
}

// add adds up the processes. Rows come by begin, tag and node.
func (h *history) add(rows []row.Rollup) {
	byTag := map[string][]row.Rollup{}
	for len(rows) > 0 {
		first := rows[0]
		n := slices.IndexFunc(rows, func(r row.Rollup) bool { return r.Begin != first.Begin || r.Tag != first.Tag })
		if n < 0 {
			n = len(rows)
		}
		if first.Tag != row.EveryTag && h.from <= first.Begin && first.Begin < h.until { // one may be unreadable
			minute := rollup.Merge(rows[:n])[0]
			minute.Tag = first.Tag
			h.minutes = append(h.minutes, minute)
			byTag[first.Tag] = append(byTag[first.Tag], minute)
		}
		rows = rows[n:]
	}
	h.tags = make(map[string]*tagHistory, len(byTag))
	for tag, minutes := range byTag {
		h.tags[tag] = h.ofTag(minutes)
	}
}

func (h *history) ofTag(minutes []row.Rollup) *tagHistory {
	t := &tagHistory{steps: make([]report.HourStep, report.OverviewSteps)}
	for _, step := range rollup.Merge(begun(minutes, func(at row.Time) row.Time {
		return at - (at-h.from)%row.Time(report.OverviewStep.Microseconds())
	})) {
		t.steps[step.Begin.Sub(h.from)/report.OverviewStep] = report.HourStep{
			Completed: step.Completed, Retried: step.Retried, Failed: step.Failed,
			P99: step.Late.Quantile(0.99, step.Max),
		}
	}
	t.hour = h.since(minutes, h.from)
	t.lately = h.since(minutes, h.until.Add(-failureSpan))
	t.minute = h.since(minutes, h.until.Add(-time.Minute))
	return t
}

// since adds up the minutes from a moment on.
func (h *history) since(minutes []row.Rollup, from row.Time) (sum row.Rollup) {
	late := slices.DeleteFunc(slices.Clone(minutes), func(m row.Rollup) bool { return m.Begin < from })
	for _, sum = range rollup.Merge(begun(late, func(row.Time) row.Time { return from })) {
	}
	return sum
}

// begun returns the minutes with other begins.
func begun(minutes []row.Rollup, at func(row.Time) row.Time) []row.Rollup {
	minutes = slices.Clone(minutes)
	for i := range minutes {
		minutes[i].Begin = at(minutes[i].Begin)
	}
	return minutes
}

// readPauses finds since when tags are paused, and who paused them. The process that has paused one writes its mark
// within a minute.
func (r *reading) readPauses(ctx context.Context, fresh bool) error {
	var tags []string
	for tag := range r.paused {
		_, known := r.cache.pauses[tag]
		fresh = fresh || !known
		tags = append(tags, tag)
	}
	if len(tags) == 0 || !fresh {
		return nil
	}
	marks, err := r.from.Rollups(ctx, row.SpanMark, tags, r.now.Add(-rollup.KeepHours), r.now)
	if err != nil {
		return err
	}
	found := rollup.Pauses(marks)
	pauses := make(map[string]rollup.Pause, len(tags)) // of each tag, so that it is known to be unknown
	for _, tag := range tags {
		pauses[tag] = found[tag]
	}
	r.cache.pauses = pauses
	return nil
}
