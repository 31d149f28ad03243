package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) overviewCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "overview",
		Short: "Show what needs attention now, and how every tag stands",
		Long: `Show what needs attention now: what is late and why, since when, and what to do. Then show
totals, and each tag with its tasks, its lateness in the last hour, the tasks completed in it, and what
falls due in the next one, by steps of 5 min.

It counts up to 1,000 tasks of a tag and status, so that it is quick on a table of any size. A part
that cannot be read is named, and the others are shown. Of many findings and tags it shows the most urgent findings
and the tags that are overdue for longest, and with --json all. A service shows the same with GET /v1/overview,
and there also processors that hang.`,
		Example: `  delaytask overview
  delaytask overview --json | jq -r '.attention[] | [.code, .tag, .text] | @tsv'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return misusedf("--limit %d: want 1 or more", limit)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				tags := limit
				if a.json {
					tags = 0
				}
				found, err := a.view().Overview(ctx, tags, 0)
				if err != nil {
					return err
				}
				found.Attention = slices.DeleteFunc(found.Attention, isOfThisProcess)
				if a.json {
					return a.printJSON(wire.FromOverview(&found))
				}
				attention := len(found.Attention)
				found.Attention = found.Attention[:min(attention, limit)]
				if err := a.printOverview(&found); err != nil {
					return err
				}
				a.leaveOut(attention-len(found.Attention), "finding")
				a.leaveOut(found.MoreTags, "tag")
				return nil
			})
		},
	}
	tagLimit(cmd, &limit)
	return a.withJSON(cmd)
}

// isOfThisProcess reports whether the finding is about the command, which runs no task.
func isOfThisProcess(f report.Finding) bool {
	return f.Code == report.FindingClockHeld || f.Code == report.FindingClockWide
}

func (a *app) printOverview(o *report.Overview) error {
	var out strings.Builder
	for i := range o.Attention {
		f := &o.Attention[i]
		head := a.screen.paint(string(f.Code), styleOfFinding(f.Code))
		if f.Tag != "" {
			head += " " + a.screen.paint(oneLine(f.Tag), bold)
		}
		if !f.Since.IsZero() {
			head += fmt.Sprintf(", since %s (%s)", moment(f.Since), span(max(o.At.Sub(f.Since), 0)))
		}
		fmt.Fprintf(&out, "%s\n  %s\n  do: %s\n", head, oneLine(localTimes(f.Text)), oneLine(f.Do))
	}
	if len(o.Attention) == 0 && len(o.Missing) == 0 {
		out.WriteString("Nothing needs attention.\n")
	}
	for _, m := range o.Missing {
		fmt.Fprintf(&out, "%s could not be read: %s\n", a.screen.paint(string(m.Part), yellow), missingTexts[m.Why])
	}
	out.WriteString("\n" + totalsText(o) + "\n")
	if err := a.painted(out.String()); err != nil || len(o.Tags) == 0 {
		return err
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	return a.printTagOverviews(o)
}

var missingTexts = map[report.OverviewTrouble]string{
	report.TroubleTimeout:  "the database did not answer in time",
	report.TroubleOperator: "a privilege or a table is missing, or the disk is full: delaytask doctor",
	report.TroubleDatabase: "the database has refused it: delaytask doctor",
}

func styleOfFinding(code report.FindingCode) style {
	switch code {
	case report.FindingUnserved, report.FindingLeaseOver, report.FindingRowsLocked, report.FindingOverdue,
		report.FindingFailing:
		return red
	default:
		return yellow
	}
}

func totalsText(o *report.Overview) string {
	t := o.Totals
	text := fmt.Sprintf("At %s: %s executing, %s overdue, %s due within a minute.", moment(o.At),
		inFigures(t.Executing), inFigures(t.Overdue), inFigures(t.DueNextMinute))
	if !t.Minute.IsZero() {
		text += fmt.Sprintf("\nIn the minute from %s on: %s completed, %s failed.", moment(t.Minute),
			grouped(int(t.Completed)), grouped(int(t.Failed)))
	}
	serve := counted(t.Nodes, "live process")
	if t.Nodes != 1 {
		serve = grouped(t.Nodes) + " live processes"
	}
	text += "\n" + serve + " with tags"
	if t.Silent > 0 {
		text += fmt.Sprintf(", %s silent", grouped(t.Silent))
	}
	return text + "."
}

func (a *app) printTagOverviews(o *report.Overview) error {
	t := a.newTable("TAG", "OVERDUE", "PENDING", "EXECUTING", "FAILED", "LATE P50", "P99", "LAST HOUR", "NEXT HOUR",
		"STATE").mayCut(0)
	for i := range o.Tags {
		of := &o.Tags[i]
		count := func(status delaytask.Status) string {
			n := grouped(int(of.Counts[status]))
			if slices.Contains(of.Capped, status) {
				n += "+"
			}
			return n
		}
		var p50, p99 string
		if of.Started > 0 {
			p50, p99 = lateness(of.P50), lateness(of.P99)
		}
		state := tagState(report.TagStats{Served: len(of.Nodes) > 0, Paused: of.Paused})
		lastHour := spark(a.screen, of.LastHour, func(s report.HourStep) int64 { return s.Completed })
		nextHour := spark(a.screen, of.Due, func(d report.DueTasks) int64 { return d.Tasks })
		t.row(of.Tag, inFigures(of.Overdue), count(delaytask.Pending), count(delaytask.Executing),
			count(delaytask.Failed), p50, p99, lastHour, nextHour, state)
		if of.Overdue.Tasks > 0 {
			t.paint(1, yellow)
		}
		if state != "served" {
			t.paint(9, yellow)
		}
	}
	return t.flush()
}

// spark draws a line of counts, and nothing where all are zero.
func spark[T any](s screen, steps []T, count func(T) int64) string {
	line, known := make([]float64, len(steps)), make([]bool, len(steps))
	most := 0.0
	for i, step := range steps {
		line[i], known[i] = float64(count(step)), true
		most = max(most, line[i])
	}
	if most == 0 {
		return ""
	}
	return s.bars(line, known, 1)
}
