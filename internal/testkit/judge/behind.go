package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// The bounds of invariant 15, once there are no more faults.
const (
	decidedIn   = 2 * time.Second  // of a tick that is due and waits for no run
	waitedIn    = 6 * time.Second  // of one that waits, from the end of the run on
	collectedIn = 31 * time.Second // of the end of a run whose executor is gone
)

// schedulesGoOn (15): without faults, each tick is decided within 2 s of its due time. A tick that waits for a run is
// decided within 6 s of its end. The end of a run is in the history within 31 s of the end of its lease.
func (c *checker) schedulesGoOn() {
	from, to, ok := c.bounded()
	if !ok {
		return
	}
	for _, s := range c.calendars {
		for i := 0; i < len(s.decisions); i++ {
			d, end := s.decisions[i], to
			last := d
			for ; i+1 < len(s.decisions) && sameCursor(d, s.decisions[i+1]); i++ {
				last = s.decisions[i+1]
			}
			if i+1 < len(s.decisions) {
				end = s.decisions[i+1].At
			}
			if d.Write != row.WriteDelete && d.Schedule.State == row.ScheduleActive && end.After(from) {
				c.movesOn(s, d, last, from, end)
			}
		}
		c.collected(s, from, to)
	}
}

// sameCursor reports whether the schedule is as far as it was, and still active.
func sameCursor(a, b *decided) bool {
	return a.Schedule.Next == b.Schedule.Next && a.Schedule.State == b.Schedule.State && b.Write == row.WriteProgress
}

// movesOn: the cursor that a decision has set moves on before the end.
func (c *checker) movesOn(s *calendar, d, last *decided, from, end time.Time) {
	of, readable := c.ticksOf(&d.Schedule)
	if d.Schedule.Next.IsZero() || !readable {
		return
	}
	bound := latest(from, d.At, c.inJournal(d.Schedule.Next.Add(of.jitter).Std())).Add(decidedIn)
	if !end.After(bound) {
		return
	}
	if freed := c.freeFrom(s, &last.Schedule, end); !freed.IsZero() {
		bound = latest(bound, freed.Add(waitedIn))
	}
	if bound = latest(bound, c.servedFrom(d.Schedule.Tag, from).Add(waitedIn)); end.After(bound) {
		c.report(15, d.Schedule.ID, fmt.Sprintf("%s: the tick %v was not decided for %v beyond its bound",
			d.Schedule.Name, d.Schedule.Next, end.Sub(bound)), d.Event, last.Event)
	}
}

// freeFrom returns when fewer runs of a schedule were unfinished than may be, for the last time before the moment. It
// is the moment itself while as many are.
func (c *checker) freeFrom(of *calendar, s *row.Schedule, moment time.Time) (freed time.Time) {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, p := range c.runs(of) {
		if t := c.tasks[p.ID]; t != nil {
			for _, u := range t.unfinished() {
				changes = append(changes, change{u.from.At, 1})
				if u.end != nil {
					changes = append(changes, change{u.end.At, -1})
				}
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	open, most := 0, 1
	if !s.Serial() {
		most = max(s.MaxOpen, 1)
	}
	for _, ch := range changes {
		if !ch.at.Before(moment) {
			break
		}
		if open >= most && open+ch.by < most {
			freed = ch.at
		}
		open += ch.by
	}
	if open >= most {
		return moment
	}
	return freed
}

// collected: the history tells of the end of each run in time.
func (c *checker) collected(s *calendar, from, to time.Time) {
	told := map[int64]time.Time{}
	deleted := to
	for _, d := range s.decisions {
		for _, r := range slices.Concat(d.Ended, d.Undone) {
			told[r.TaskID] = d.At
		}
		if d.Write == row.WriteDelete {
			deleted = d.At
		}
	}
	for _, d := range s.decisions {
		for _, r := range d.Insert {
			t := c.tasks[r.ID]
			if t == nil || t.last() == nil || !isFinal(t.last().Status) || len(t.writes) == 0 {
				continue
			}
			at, is := told[r.ID]
			if !is {
				at = deleted
			}
			end, lease := t.writes[len(t.writes)-1], time.Time{}
			for _, w := range slices.Concat(t.writes, t.leases) {
				if w.Status == executing {
					lease = latest(lease, c.inJournal(w.Due))
				}
			}
			if bound := latest(from, end.At, lease).Add(collectedIn); at.After(bound) {
				what := fmt.Sprintf("the history did not tell of its end for %v", at.Sub(end.At))
				c.report(15, r.ID, what, d.Event, end)
			}
		}
	}
}
