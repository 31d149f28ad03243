package forecast

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/report"
)

// readTicks adds the ticks of schedules. A tick before the cursor has its task already, or never will. One that is due
// and not decided is not in it: what becomes of it depends on the runs that are open.
func (r *reader) readTicks(ctx context.Context, only string) error {
	schedules, err := r.Upcoming(ctx, r.grid.End(), r.schedules+1)
	if err != nil {
		return fmt.Errorf("read the schedules: %w", err)
	}
	if len(schedules) > r.schedules {
		schedules, r.leftOut = schedules[:r.schedules], true
	}
	began := time.Now()
	for i := range schedules {
		s := &schedules[i]
		switch {
		case only != "" && s.Tag != only:
		case time.Since(began) > ticksTime:
			r.leftOut = true
			r.of(s.Tag)[1:].mark(report.AtLeast)
		default:
			var skipped []row.ScheduleRun
			if decide.Ahead(s) {
				if skipped, err = r.Runs(ctx, s.ID, 0, decide.MostAhead); err != nil {
					return fmt.Errorf("read what was skipped of a schedule: %w", err)
				}
			}
			r.addTicks(s, skipped)
		}
	}
	return nil
}

// addTicks adds the ticks of one schedule. Where they cannot be counted, each cell of the tag may have more.
func (r *reader) addTicks(s *row.Schedule, history []row.ScheduleRun) {
	counts, complete := ticksOf(s, history, r.grid.Cells()[1:])
	if counts == nil && complete {
		return
	}
	l := r.of(s.Tag)[1:]
	for i, n := range counts {
		l[i].Tasks += int64(n)
		l[i].Ticks += int64(n)
	}
	if !complete {
		l.mark(report.AtLeast)
	}
}

// ticksOf returns how many ticks to come of the schedule are due in each cell, nil for none.
func ticksOf(s *row.Schedule, history []row.ScheduleRun, cells []row.DueCell) (counts []int, complete bool) {
	read, err := spec.ParseText(s.Spec)
	if err != nil {
		return nil, false // of a newer version
	}
	due := []row.Time{cells[0].From}
	for _, c := range cells {
		due = append(due, c.To)
	}
	counts, complete = decide.ComingOf(s, read, history).Counts(due)
	if !slices.ContainsFunc(counts, func(n int) bool { return n > 0 }) {
		counts = nil
	}
	return counts, complete
}
