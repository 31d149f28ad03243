package judge

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
)

// rescued (8): once there are no more faults, a lease that is over is ended within the bound; none is taken from an executor
// before it is over; and what a lost lease costs is a crash and no attempt.
func (c *court) rescued() {
	from, to, drained := c.bounded()
	for _, t := range c.byID() {
		for i, w := range t.writes {
			if w.Status != executing {
				continue
			}
			next := t.next(i)
			if next != nil && next.CrashCount != w.CrashCount {
				c.crashIsFair(t, w, next)
			}
			if !drained {
				continue
			}
			ends := to
			if next != nil {
				ends = next.At
			}
			bound := latest(from.Add(c.rules.Hold), c.leaseEnd(t, w)).Add(c.rules.Rescue)
			if ends.After(bound) {
				c.breach(8, t.id, fmt.Sprintf("its lease was over for %v, and nobody ended it", ends.Sub(bound)+c.rules.Rescue), w, next)
			}
		}
	}
}

func (c *court) crashIsFair(t *task, claim, w *journal.Event) {
	if w.CrashCount != claim.CrashCount+1 || w.Attempt != max(claim.Attempt-1, 0) {
		c.breach(8, t.id, "a lost lease took it from "+describe(claim, w), claim, w)
	}
	if lease := t.lastLease(claim); clock(w).Before(lease.Due) {
		c.breach(8, t.id, fmt.Sprintf("its lease was taken %v before it was over", lease.Due.Sub(clock(w))), claim, lease, w)
	}
}

// lastLease is the event that moved the lease of a claim last.
func (t *task) lastLease(claim *journal.Event) *journal.Event {
	last := claim
	for _, l := range t.leases {
		if l.Version == claim.Version {
			last = l
		}
	}
	return last
}

// leaseEnd is when a lease is over at the latest. Where the journal does not show how leases are moved, an executor that
// crashed may have moved it in its last moment.
func (c *court) leaseEnd(t *task, claim *journal.Event) time.Time {
	end := c.inJournal(t.lastLease(claim).Due)
	if len(t.leases) > 0 {
		return end
	}
	if r := t.run(claim.Version); r != nil {
		if crash := c.crashed[r.start.Node]; crash != nil {
			end = latest(end, crash.At.Add(c.rules.TTR))
		}
	}
	return end
}
