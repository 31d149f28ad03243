package forecast

import (
	"context"
	"fmt"
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
			r.addTicks(s)
		}
	}
	return nil
}

// addTicks adds the ticks of one schedule. Where they cannot be counted, each cell of the tag may have more.
func (r *reader) addTicks(s *row.Schedule) {
	counts, complete := ticksOf(s, r.grid.Cells()[1:])
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

// ticksOf returns how many ticks of the schedule, from its cursor on, are due in each cell, nil for none.
func ticksOf(s *row.Schedule, cells []row.DueCell) (counts []int, complete bool) {
	read, err := spec.ParseText(s.Spec)
	if err != nil {
		return nil, false // of a newer version
	}
	jitter := decide.Jitter(s.Name, s.Jitter)
	moments := []time.Time{max(cells[0].From.Add(-jitter), s.Next).Std()}
	for _, c := range cells {
		moments = append(moments, max(c.To.Add(-jitter), s.Next).Std())
	}
	counts, complete = read.Counts(moments)
	left := int64(s.MaxRuns) - s.Runs
	some := false
	for i := range counts {
		if s.MaxRuns > 0 {
			counts[i] = int(max(min(int64(counts[i]), left), 0))
			left -= int64(counts[i])
		}
		some = some || counts[i] > 0
	}
	if !some {
		counts = nil
	}
	return counts, complete
}
