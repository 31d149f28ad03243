package client

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Overview returns what needs attention now, and how every tag stands that the token may observe. The service reads at
// most every 5 s for all its callers. While its database is away it returns the last reading, with its age and the
// class of the error.
func (c *Client) Overview(ctx context.Context) (report.Overview, error) {
	var answer wire.Overview
	if err := c.read(ctx, "/v1/overview", "read the overview", &answer); err != nil {
		return report.Overview{}, err
	}
	t := answer.Totals
	o := report.Overview{
		At: answer.At.Std(), Age: millis(answer.AgeMS), Stale: report.OverviewTrouble(answer.Stale),
		Totals: report.OverviewTotals{
			Executing: dueTasks(t.Executing), Overdue: dueTasks(t.Overdue), DueNextMinute: dueTasks(t.DueNextMinute),
			Completed: t.Completed, Failed: t.Failed, Minute: t.Minute.Std(), Nodes: t.Nodes, Silent: t.Silent,
		},
		Series: series(&answer.Series), Due: allDue(answer.Due), DueStart: answer.DueStart.Std(),
		HourStart: answer.HourStart.Std(),
	}
	for _, m := range answer.Missing {
		o.Missing = append(o.Missing, report.MissingPart{
			Part: report.OverviewPart(m.Part), Why: report.OverviewTrouble(m.Why),
		})
	}
	for i := range answer.Attention {
		o.Attention = append(o.Attention, finding(&answer.Attention[i]))
	}
	for i := range answer.Tags {
		o.Tags = append(o.Tags, tagOverview(&answer.Tags[i]))
	}
	return o, nil
}

func allDue(due []wire.DueTasks) (all []report.DueTasks) {
	for _, d := range due {
		all = append(all, dueTasks(d))
	}
	return all
}

func finding(f *wire.Finding) report.Finding {
	found := report.Finding{
		Code: report.FindingCode(f.Code), Tag: f.Tag, Number: f.Number, AtLeast: f.AtLeast, Since: f.Since.Std(),
		Text: f.Text, Do: f.Do, Task: int64(f.Task), Group: f.Group, Error: f.Error, Stack: f.Stack,
	}
	if f.Node != nil {
		found.Node = report.NodeRef(*f.Node)
	}
	return found
}

func tagOverview(t *wire.TagOverview) report.TagOverview {
	o := report.TagOverview{
		Tag: t.Tag, Counts: map[delaytask.Status]int64{}, Overdue: dueTasks(t.Overdue), OldestDue: t.OldestDue.Std(),
		Paused: t.Paused, PausedSince: t.PausedSince.Std(), PausedBy: t.PausedBy, Reason: t.Reason, Due: allDue(t.Due),
	}
	for status, n := range t.Counts {
		o.Counts[delaytask.Status(status)] = n
	}
	for _, status := range t.Capped {
		o.Capped = append(o.Capped, delaytask.Status(status))
	}
	for _, n := range t.Nodes {
		o.Nodes = append(o.Nodes, report.NodeRef(n))
	}
	if l := t.Lateness; l != nil {
		o.Started, o.P50, o.P99, o.Max = l.Samples, exact(l.P50), exact(l.P99), exact(l.Max)
	}
	for _, s := range t.LastHour {
		o.LastHour = append(o.LastHour, report.HourStep{
			Completed: s.Completed, Retried: s.Retried, Failed: s.Failed, P99: exact(s.P99MS),
		})
	}
	return o
}
