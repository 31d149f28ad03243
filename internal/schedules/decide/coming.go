package decide

import (
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// Coming are the ticks of a schedule that are not decided: those from its cursor on, without those that were skipped
// ahead of it. What shows or counts ticks that are to come asks here.
type Coming struct {
	ticks
	next row.Time // the cursor
	left int      // how many may run
}

// ComingOf returns the ticks to come of a schedule. The history is needed where [Ahead] says so.
func ComingOf(s *row.Schedule, sp *spec.Spec, history []row.ScheduleRun) Coming {
	c := Coming{newTicks(s, sp, nil), s.Next, math.MaxInt}
	if s.MaxRuns > 0 {
		c.left = int(max(int64(s.MaxRuns)-s.Runs, 0))
	}
	if s.Next.IsZero() {
		c.left = 0
	} else {
		c.ahead = skipped(history, s.Next)
	}
	return c
}

// Has reports whether a tick from the cursor on may run when each one before it does.
func (c Coming) Has(tick row.Time) bool { return !c.isAhead(tick) && c.count(c.next, tick) <= c.left }

// Next returns the next n of them that are due after the moment. Between them are the ticks that the rule for clock
// changes drops, as [spec.Spec.Preview] has them.
func (c Coming) Next(now row.Time, n int) (all []spec.Tick, complete bool) {
	n = min(n, c.left)
	if n <= 0 {
		return nil, true
	}
	found, complete := c.spec.Preview(max(now.Add(-c.jitter), c.next-1).Std(), n+len(c.ahead))
	for _, t := range found {
		switch {
		case n == 0:
			return all, complete
		case t.Dropped:
		case c.isAhead(row.At(t.Time)):
			continue
		default:
			n--
		}
		all = append(all, t)
	}
	return all, complete
}

// Counts returns how many of them are due from each of the moments, which ascend, until the next one. It is not
// complete when the search got too expensive.
func (c Coming) Counts(due []row.Time) (counts []int, complete bool) {
	from, moments := make([]row.Time, len(due)), make([]time.Time, len(due))
	for i, at := range due {
		from[i] = max(at.Add(-c.jitter), c.next)
		moments[i] = from[i].Std()
	}
	counts, complete = c.spec.Counts(moments)
	for i, left := 0, c.left; i < len(counts); i++ {
		counts[i] = max(min(counts[i]-c.aheadIn(from[i], from[i+1]-1), left), 0)
		left -= counts[i]
	}
	return counts, complete
}
