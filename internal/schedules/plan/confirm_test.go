package plan

import (
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

func TestTheRunThatWasReplacedLastCounts(t *testing.T) {
	run := func(tick row.Time, task int64, finish row.Time) row.ScheduleRun {
		return row.ScheduleRun{Tick: tick, TaskID: task, Outcome: row.OutcomeCancelled, Finish: finish}
	}
	skipped := row.ScheduleRun{Tick: 90, Outcome: row.OutcomeSkipped}
	open := row.ScheduleRun{Tick: 80, TaskID: 8, Outcome: row.OutcomeOpen}
	for _, c := range []struct {
		name  string
		runs  []row.ScheduleRun
		alone bool
	}{
		{"it is the only one", []row.ScheduleRun{skipped, open, run(10, 1, 50)}, true},
		{"another was replaced before", []row.ScheduleRun{run(20, 1, 50), run(10, 2, 40)}, true},
		{"another was replaced with it", []row.ScheduleRun{run(20, 1, 50), run(10, 2, 50)}, false},
		{"one of an earlier tick was replaced since", []row.ScheduleRun{run(20, 1, 40), run(10, 2, 50)}, false},
		{"it is not known", []row.ScheduleRun{skipped, open}, false},
	} {
		if got := replacedAlone(c.runs, 1); got != c.alone {
			t.Errorf("%s: %t, want %t", c.name, got, c.alone)
		}
	}
}
