package overview

import (
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// view is what one viewer sees of a reading.
type view struct {
	Reading
	filter report.OverviewFilter
	tags   map[string]*report.TagOverview
	served map[string][]report.NodeRef // by live processes
}

// Overview returns what a viewer may see of the reading. It shares no memory with another.
func (r Reading) Overview(f report.OverviewFilter) report.Overview {
	v := &view{
		Reading: r, filter: f, tags: map[string]*report.TagOverview{}, served: map[string][]report.NodeRef{},
	}
	o := report.Overview{At: r.now.Std(), Age: r.Age, Stale: r.Stale, Missing: r.missingParts()}
	v.addNodes(&o.Totals)
	v.addTags()
	v.addForecast(&o)
	v.addHistory(&o)
	o.Attention = v.attention()
	for _, tag := range slices.Sorted(maps.Keys(v.tags)) {
		t := v.tags[tag]
		o.Totals.Executing = o.Totals.Executing.Plus(countOf(t, delaytask.Executing))
		o.Totals.Overdue = o.Totals.Overdue.Plus(t.Overdue)
		o.Tags = append(o.Tags, *t)
	}
	if most := f.MostTags; most > 0 {
		oldest := func(t *report.TagOverview) time.Time { return t.OldestDue }
		o.Tags, o.MoreTags = listing.LongestDue(o.Tags, most, oldest)
	}
	if most := f.MostFindings; most > 0 && most < len(o.Attention) {
		o.Attention, o.MoreFindings = slices.Clone(o.Attention[:most]), len(o.Attention)-most
	}
	return o
}

// parts is their order.
var parts = []report.OverviewPart{
	report.PartCounts, report.PartDue, report.PartLeases, report.PartFailures, report.PartHistory,
	report.PartForecast, report.PartLocks, report.PartSchedules,
}

func (r Reading) missingParts() (missing []report.MissingPart) {
	for _, part := range parts {
		if err := r.missing[part]; err != nil {
			missing = append(missing, report.MissingPart{Part: part, Why: troubleOf(err)})
		}
	}
	return missing
}

// sees reports whether the viewer may see the tag, and seesAll whether it may see what is about no tag.
func (v *view) sees(tag string) bool { return v.filter.Sees == nil || v.filter.Sees(tag) }
func (v *view) seesAll() bool        { return v.filter.Sees == nil }

// of returns a tag that the viewer may see, and nil for another.
func (v *view) of(tag string) *report.TagOverview {
	if t := v.tags[tag]; t != nil {
		return t
	}
	if !v.sees(tag) {
		return nil
	}
	t := &report.TagOverview{
		Tag: tag, Counts: map[delaytask.Status]int64{}, Overdue: report.DueTasks{Precision: report.Exact},
	}
	v.tags[tag] = t
	return t
}

func (v *view) addNodes(t *report.OverviewTotals) {
	for _, n := range v.nodes {
		switch alive := isAlive(n, v.now); {
		case len(n.Tags) == 0:
		case !alive:
			t.Silent++
		case !n.Leaving:
			t.Nodes++
			for _, tag := range n.Tags {
				v.served[tag] = append(v.served[tag], nodeRef(n))
			}
		}
	}
	exact := report.DueTasks{Precision: report.Exact}
	t.Executing, t.Overdue, t.DueNextMinute = exact, exact, exact
	for tag, due := range v.due {
		if v.sees(tag) {
			t.DueNextMinute = t.DueNextMinute.Plus(tasks(due.next, due.moreNext))
		}
	}
}

func nodeRef(n row.Node) report.NodeRef { return report.NodeRef{Number: n.Number, Name: n.Name} }

func tasks(n int64, more bool) report.DueTasks {
	if more {
		return report.DueTasks{Tasks: n, Precision: report.AtLeast}
	}
	return report.DueTasks{Tasks: n, Precision: report.Exact}
}

func countOf(t *report.TagOverview, status delaytask.Status) report.DueTasks {
	return tasks(t.Counts[status], slices.Contains(t.Capped, status))
}

// addTags adds the tags that have tasks, are served or are paused.
func (v *view) addTags() {
	for tag, nodes := range v.served {
		if t := v.of(tag); t != nil {
			t.Nodes = nodes
		}
	}
	for tag, state := range v.paused {
		if t := v.of(tag); t != nil {
			t.Reason = state.Reason
			t.Paused, t.PausedSince, t.PausedBy = true, v.pauses[tag].Since.Std(), v.pauses[tag].By
		}
	}
	for _, counts := range [][]listing.TagCount{v.counts, v.ended.found} {
		for _, c := range counts {
			t := v.of(c.Tag)
			if t == nil {
				continue
			}
			status := c.Status.Text()
			if t.Counts[status] += c.Count; c.Capped {
				t.Capped = append(t.Capped, status)
			}
		}
	}
	for tag, due := range v.due {
		if t := v.of(tag); t != nil && due.overdue > 0 {
			t.Overdue, t.OldestDue = tasks(due.overdue, due.moreOverdue), due.oldest.Due.Std()
		}
	}
}

// addForecast adds what falls due within the next hour. A forecast knows more of what is overdue than a capped count.
func (v *view) addForecast(o *report.Overview) {
	f := v.forecast.found
	if f == nil {
		return
	}
	seen := *f
	seen.Tags = nil
	const steps = int(report.OverviewStep / time.Minute)
	for _, of := range f.Tags {
		t := v.of(of.Tag)
		if t == nil {
			continue
		}
		seen.Tags = append(seen.Tags, of)
		for step := range slices.Chunk(of.Due, steps) {
			t.Due = append(t.Due, report.TagForecast{Due: step}.Sum())
		}
		if t.Overdue.Precision == report.AtLeast && of.Overdue.Tasks > t.Overdue.Tasks {
			t.Overdue = of.Overdue
		}
	}
	o.Due, o.DueStart = seen.Total().Due, f.Start
}

func (v *view) addHistory(o *report.Overview) {
	h := v.history.found
	if h == nil {
		return
	}
	o.HourStart, o.Totals.Minute = h.from.Std(), h.until.Add(-time.Minute).Std()
	for tag, of := range h.tags {
		if !v.sees(tag) {
			continue
		}
		o.Totals.Completed += of.minute.Completed
		o.Totals.Failed += of.minute.Failed
		if t := v.tags[tag]; t != nil {
			t.Started, t.Max = of.hour.Late.Count(), of.hour.Max
			t.P50, t.P99 = of.hour.Late.Quantile(0.5, t.Max), of.hour.Late.Quantile(0.99, t.Max)
			t.LastHour = slices.Clone(of.steps)
		}
	}
	for _, t := range v.tags {
		if t.LastHour == nil {
			t.LastHour = make([]report.HourStep, report.OverviewSteps)
		}
	}
	minutes := slices.DeleteFunc(slices.Clone(h.minutes), func(m row.Rollup) bool { return !v.sees(m.Tag) })
	marks := slices.DeleteFunc(slices.Clone(h.marks), func(m row.Rollup) bool { return m.Tag != "" && !v.sees(m.Tag) })
	o.Series = rollup.Series(rollup.Merge(minutes), rollup.Marks(marks, ""))
	o.Series.Span, o.Series.From, o.Series.To = time.Minute, h.from.Std(), h.until.Std()
}
