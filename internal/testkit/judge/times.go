package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// caughtUp (7): once there are no more faults, everything that is due and served is claimed within the bound.
func (c *checker) caughtUp() {
	from, to, ok := c.bounded()
	if !ok {
		return
	}
	within := c.rules.CaughtUp
	if c.rules.Many > 0 && c.mostAtOnce() >= c.rules.Many {
		within = c.rules.CaughtUpByMany
	}
	for _, t := range c.ordered {
		for i, w := range t.writes {
			if w.Status != pending {
				continue
			}
			ends, next := to, t.next(i)
			if next != nil {
				ends = next.At
			}
			bound := latest(from, w.At, c.inJournal(w.Due)).Add(within)
			if !ends.After(bound) {
				continue // nearly all of them: servedFrom, which is slow, is for the others
			}
			if bound = latest(bound, c.servedFrom(t.writes[0].Tag, from).Add(within)); ends.After(bound) {
				c.report(7, t.id, fmt.Sprintf("it was not taken for %v after it was due and there were no more faults",
					ends.Sub(bound)+within), w, next)
			}
		}
	}
}

// mostAtOnce returns how many processes have lived at once, at most.
func (c *checker) mostAtOnce() (most int) {
	for _, start := range c.starts {
		alive := 0
		for _, other := range c.starts {
			if gone := c.gone(other.Node); !other.At.After(start.At) && (gone == nil || gone.At.After(start.At)) {
				alive++
			}
		}
		most = max(most, alive)
	}
	return most
}

// bounded returns when the bounds of invariants 7 and 8 count, on the journal's clock: from the end of the faults, and
// the time to settle, until the end. It is false for a journal without such a time.
func (c *checker) bounded() (from, to time.Time, ok bool) {
	if c.drain == nil || c.done == nil {
		return from, to, false
	}
	return c.drain.At.Add(c.rules.Settle), c.done.At, true
}

// inJournal converts a moment on the database's clock, as it is after the faults, to the journal's.
func (c *checker) inJournal(t time.Time) time.Time { return t.Add(-shift(c.drain)) }

// servedFrom returns the first time, from the moment on, when a process serves the tag: no other can take its tasks.
// For a tag that no process of the journal serves it returns the moment itself.
func (c *checker) servedFrom(tag string, moment time.Time) time.Time {
	var back time.Time
	for _, start := range c.starts {
		switch {
		case !slices.Contains(strings.Fields(start.Detail), tag):
		case !start.At.After(moment):
			if gone := c.gone(start.Node); gone == nil || gone.At.After(moment) {
				return moment
			}
		case back.IsZero() || start.At.Before(back):
			back = start.At
		}
	}
	return latest(moment, back)
}

// gone is how the process stopped serving, nil while it serves.
func (c *checker) gone(node string) *journal.Event {
	if crash := c.crashed[node]; crash != nil {
		return crash
	}
	for _, s := range c.stops {
		if s.begin.Node == node {
			return s.begin
		}
	}
	return nil
}

// neverEarly (5): no execution starts before the task is due, by what its processor was told and by what the database
// held at the claim. No expected time is earlier than the save asked for.
func (c *checker) neverEarly() {
	for _, t := range c.ordered {
		for i, r := range t.runs {
			started := clock(r.begin)
			due := latest(r.begin.Due, t.dueBefore(r.begin.Version))
			// Later executions may go by another clock, after a failover, than the expected time. The process with the
			// first claim may have crashed before it ran the task.
			if i == 0 && !t.claimedBefore(r.begin.Version) {
				due = latest(due, r.begin.Expected)
			}
			if started.Before(due) {
				c.report(5, t.id, fmt.Sprintf("it started %v early", due.Sub(started)), r.begin)
			}
		}
		if s := c.saves[t.body()]; s != nil {
			asked, first := s.least(), t.first()
			least := asked.Expected.Add(-setBack(asked, first))
			if !first.Expected.IsZero() && first.Version == 0 && first.Expected.Before(least) {
				early := least.Sub(first.Expected)
				c.report(5, t.id, fmt.Sprintf("it is expected %v earlier than asked for", early), asked, first)
			}
		}
	}
}

// least is the try with the earliest expected time. Any of them may be the one that was stored, and a later one may go
// by another clock.
func (s *save) least() *journal.Event {
	first := slices.MinFunc(s.tries, func(a, b *span) int { return a.begin.Expected.Compare(b.begin.Expected) })
	return first.begin
}

// setBack is how far a failover between a call and its effect put the database's clock back: a delay may be counted by
// either clock. It is 0 where the journal does not hold the clock of the call.
func setBack(call, became *journal.Event) time.Duration {
	if call.Clock.IsZero() {
		return 0
	}
	return max(shift(call)-shift(became), 0)
}

// claimedBefore reports whether there was a claim before the one to this version.
func (t *task) claimedBefore(version int64) bool {
	return slices.ContainsFunc(t.writes, func(w *journal.Event) bool {
		return w.Status == executing && w.Version < version
	})
}

// dueBefore returns when the row was due that a claim to this version took.
func (t *task) dueBefore(version int64) (due time.Time) {
	for _, w := range t.writes {
		if w.Version == version-1 && w.Status == pending {
			due = w.Due
		}
	}
	return due
}
