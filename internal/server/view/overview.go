package view

import (
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Overview is an overview in JSON.
func Overview(o *report.Overview) wire.Overview {
	v := wire.Overview{
		At: wire.Time(o.At), AgeMS: o.Age.Milliseconds(), Stale: string(o.Stale),
		Missing: make([]wire.MissingPart, len(o.Missing)), Attention: make([]wire.Finding, len(o.Attention)),
		Totals: wire.OverviewTotals{
			Executing: dueTasks(o.Totals.Executing), Overdue: dueTasks(o.Totals.Overdue),
			DueNextMinute: dueTasks(o.Totals.DueNextMinute), Completed: o.Totals.Completed, Failed: o.Totals.Failed,
			Minute: wire.Time(o.Totals.Minute), Nodes: o.Totals.Nodes, Silent: o.Totals.Silent,
		},
		Tags: make([]wire.TagOverview, len(o.Tags)), Series: Series("", &o.Series),
		DueStart: wire.Time(o.DueStart), Due: allDue(o.Due),
		HourStart: wire.Time(o.HourStart), StepMS: report.OverviewStep.Milliseconds(),
	}
	for i, m := range o.Missing {
		v.Missing[i] = wire.MissingPart{Part: string(m.Part), Why: string(m.Why)}
	}
	for i := range o.Attention {
		v.Attention[i] = finding(&o.Attention[i])
	}
	for i := range o.Tags {
		v.Tags[i] = tagOverview(&o.Tags[i])
	}
	return v
}

func allDue(due []report.DueTasks) []wire.DueTasks {
	all := make([]wire.DueTasks, len(due))
	for i, d := range due {
		all[i] = dueTasks(d)
	}
	return all
}

func finding(f *report.Finding) wire.Finding {
	v := wire.Finding{
		Code: string(f.Code), Tag: f.Tag, Number: f.Number, AtLeast: f.AtLeast, Since: wire.Time(f.Since),
		Text: f.Text, Do: f.Do, Task: wire.ID(f.Task), Group: f.Group, Error: f.Error, Stack: f.Stack,
	}
	if f.Node.Number > 0 {
		v.Node = &wire.NodeRef{Number: f.Node.Number, Name: f.Node.Name}
	}
	return v
}

func tagOverview(t *report.TagOverview) wire.TagOverview {
	v := wire.TagOverview{
		Tag: t.Tag, Counts: map[string]int64{}, Overdue: dueTasks(t.Overdue), OldestDue: wire.Time(t.OldestDue),
		Paused: t.Paused, PausedSince: wire.Time(t.PausedSince), PausedBy: t.PausedBy, Reason: t.Reason,
		Nodes:    make([]wire.NodeRef, len(t.Nodes)),
		LastHour: make([]wire.HourStep, len(t.LastHour)), Due: allDue(t.Due),
	}
	for status, n := range t.Counts {
		v.Counts[string(status)] = n
	}
	for _, status := range t.Capped {
		v.Capped = append(v.Capped, string(status))
	}
	for i, n := range t.Nodes {
		v.Nodes[i] = wire.NodeRef(n)
	}
	if t.Started > 0 {
		v.Lateness = &wire.SeriesLateness{
			Samples: t.Started, P50: Milliseconds(t.P50), P99: Milliseconds(t.P99), Max: Milliseconds(t.Max),
		}
	}
	for i, s := range t.LastHour {
		v.LastHour[i] = wire.HourStep{
			Completed: s.Completed, Retried: s.Retried, Failed: s.Failed, P99MS: Milliseconds(s.P99),
		}
	}
	return v
}
