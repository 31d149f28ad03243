package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// neverEarly (5): no execution starts before the task is due, by what its processor was told and by what the database
// held at the claim. No expected time is earlier than the save asked for.
func (c *checker) neverEarly() {
	for _, t := range c.byID() {
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
