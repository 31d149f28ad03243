package main

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

func TestTheOverviewTellsFirstWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.ok("overview"), "Nothing needs attention.\n\nAt ", ": 0 executing, 0 overdue, 0 due within a minute.")
	id := s.save("mail", "1")
	s.save("report", "1", "--delay", "20m")
	s.exec("UPDATE delay_task_message SET due_time = datetime('now', '-1 minute') || '.000000'" +
		" WHERE tag = 'mail'")
	out := s.ok("overview")
	if !strings.HasPrefix(out, "unserved mail, since ") {
		t.Errorf("the first finding is not the first line:\n%s", out)
	}
	contains(t, out, "1 task is overdue, and no live process serves the tag\n  do: start the process",
		"TAG     OVERDUE  PENDING  EXECUTING  FAILED", "\nmail    1        1 ", "unserved\nreport  0 ")
	var o wire.Overview
	s.decode(&o, "overview")
	if len(o.Attention) != 1 || o.Attention[0].Task.String() != id || len(o.Tags) != 2 || o.StepMS != 5*60_000 {
		t.Errorf("got %+v", o)
	}
	s.ok("pause", "mail")
	contains(t, s.ok("overview"), "paused_overdue mail", "do: delaytask resume mail")
}

func TestTheOverviewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := report.Overview{
		Missing: []report.MissingPart{{Part: report.PartHistory, Why: report.TroubleOperator}},
		Totals:  report.OverviewTotals{Nodes: 2, Silent: 1, Minute: time.Unix(0, 0), Completed: 1204},
		Tags: []report.TagOverview{{
			Tag: "a", Counts: map[delaytask.Status]int64{delaytask.Pending: 1000}, Started: 1, P99: time.Second,
			Capped:   []delaytask.Status{delaytask.Pending},
			Overdue:  report.DueTasks{Tasks: 214_000, Precision: report.About},
			LastHour: []report.HourStep{{Completed: 1}, {}, {Completed: 8}},
			Due:      []report.DueTasks{{Tasks: 4}, {Tasks: 2}},
		}},
	}
	a := &app{stdout: &out, screen: screen{blocks: true}}
	if err := a.printOverview(&o); err != nil {
		t.Fatal(err)
	}
	contains(t, out.String(), "history could not be read: a privilege", "1,204 completed", "2 live processes",
		"1 silent", "≈214,000", "1,000+", "▂▁█", "█▅", "1000.0 ms", "unserved")
}
