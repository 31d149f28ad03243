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
	for _, t := range c.byID() {
		for i, w := range t.writes {
			if w.Status != pending {
				continue
			}
			ends, next := to, t.next(i)
			if next != nil {
				ends = next.At
			}
			bound := latest(from, w.At, c.inJournal(w.Due)).Add(c.rules.CaughtUp)
			if !ends.After(bound) {
				continue // nearly all of them: servedFrom, which is slow, is for the others
			}
			if bound = latest(bound, c.servedFrom(t.writes[0].Tag, from).Add(c.rules.CaughtUp)); ends.After(bound) {
				c.report(7, t.id, fmt.Sprintf("it was not taken for %v after it was due and there were no more faults",
					ends.Sub(bound)+c.rules.CaughtUp), w, next)
			}
		}
	}
}

// bounded returns the time in which the bounds of invariants 7 and 8 count, on the journal's clock: from the end of the
// faults, and the time to settle, until the end. It is false for a journal without such a time.
func (c *checker) bounded() (from, to time.Time, ok bool) {
	if c.drain == nil || c.done == nil {
		return from, to, false
	}
	return c.drain.At.Add(c.rules.Settle), c.done.At, true
}

// inJournal converts a moment on the database's clock, as it is after the faults, to the journal's.
func (c *checker) inJournal(t time.Time) time.Time { return t.Add(-shift(c.drain)) }

// next returns the transition after the i-th one, nil while there is none.
func (t *task) next(i int) *journal.Event {
	if i+1 < len(t.writes) {
		return t.writes[i+1]
	}
	return nil
}

// servedFrom returns the first time, from the moment on, at which a process serves the tag: no other can take its
// tasks. For a tag that no process of the journal serves it returns the moment itself.
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
