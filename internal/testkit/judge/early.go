package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// neverEarly (5): no execution starts before the task is due, neither by what its processor was told nor by what the
// database held when it was claimed; and no promise is shorter than the delay that was asked for.
func (c *court) neverEarly() {
	for _, t := range c.byID() {
		for i, r := range t.runs {
			started := clock(r.begin)
			due := latest(r.begin.Due, t.dueBefore(r.begin.Version))
			// Later ones keep the promise as it was by the clock of then, which a failover may have changed. Who had the first
			// claim may have crashed before it could run the task.
			if i == 0 && !t.claimedBefore(r.begin.Version) {
				due = latest(due, r.begin.Expected)
			}
			if started.Before(due) {
				c.breach(5, t.id, fmt.Sprintf("it started %v early", due.Sub(started)), r.begin)
			}
		}
		if s := c.saves[t.body()]; s != nil {
			asked, first := s.least(), t.first()
			least := asked.Expected.Add(-setBack(asked, first))
			if !first.Expected.IsZero() && first.Version == 0 && first.Expected.Before(least) {
				c.breach(5, t.id, fmt.Sprintf("its promise is %v shorter than asked for", least.Sub(first.Expected)), asked, first)
			}
		}
	}
}

// least is the try that asked for the earliest promise: any of them may be the one that was stored, and a later one may
// go by another clock.
func (s *save) least() *journal.Event {
	first := slices.MinFunc(s.tries, func(a, b *span) int { return a.begin.Expected.Compare(b.begin.Expected) })
	return first.begin
}

// setBack is how far the database's clock went back between a call and what came of it, because another server took
// over meanwhile: a delay is counted by the clock of either. It is 0 where the journal does not hold the clock of the
// call.
func setBack(call, became *journal.Event) time.Duration {
	if call.Clock.IsZero() {
		return 0
	}
	return max(shift(call)-shift(became), 0)
}

// claimedBefore reports whether there was a claim before the one to this version.
func (t *task) claimedBefore(version int64) bool {
	return slices.ContainsFunc(t.writes, func(w *journal.Event) bool { return w.Status == executing && w.Version < version })
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
