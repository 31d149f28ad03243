package judge

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// rescued (8): after the faults, a lease that is over is ended within the bound. No lease is taken before it is over. A
// lost lease costs a crash and no attempt.
func (c *checker) rescued() {
	for _, t := range c.byID() {
		for i, w := range t.writes {
			if w.Status != executing {
				continue
			}
			next := t.next(i)
			if next != nil && next.CrashCount != w.CrashCount {
				c.crashIsFair(t, w, next)
			}
			c.endedInTime(t, w, next)
		}
	}
}

// endedInTime compares every lease of a claim with the bound. An executor that comes back and moves a lease late does
// not excuse that the lease was not ended before.
func (c *checker) endedInTime(t *task, claim, next *journal.Event) {
	from, to, drained := c.bounded()
	if !drained {
		return
	}
	leases := t.leasesOf(claim)
	for i, lease := range leases {
		over, ends, last := c.inJournal(lease.Due), to, i == len(leases)-1
		switch {
		case !last:
			ends = leases[i+1].At
		case next != nil:
			ends = next.At
		}
		if last {
			over = c.leaseEnd(t, claim)
		}
		bound := latest(from.Add(c.rules.Hold), over).Add(c.rules.Rescue)
		if ends.After(bound) {
			late := ends.Sub(bound) + c.rules.Rescue
			c.report(8, t.id, fmt.Sprintf("its lease was over for %v and was not ended", late), lease, next)
		}
		if last && next != nil && next.CrashCount > claim.CrashCount {
			c.counts.rescue(ends.Sub(latest(c.drain.At, over)), over.After(from.Add(c.rules.Hold)))
		}
	}
}

func (c *checker) crashIsFair(t *task, claim, w *journal.Event) {
	if w.CrashCount != claim.CrashCount+1 || w.Attempt != max(claim.Attempt-1, 0) {
		c.report(8, t.id, "a lost lease took it from "+describe(claim, w), claim, w)
	}
	if lease := t.lastLease(claim); clock(w).Before(lease.Due) {
		early := lease.Due.Sub(clock(w))
		c.report(8, t.id, fmt.Sprintf("its lease was taken %v before it was over", early), claim, lease, w)
	}
}

// leasesOf returns the claim, which gave the first lease, and the events that moved it.
func (t *task) leasesOf(claim *journal.Event) []*journal.Event {
	leases := []*journal.Event{claim}
	for _, l := range t.leases {
		if l.Version == claim.Version {
			leases = append(leases, l)
		}
	}
	return leases
}

// lastLease is the event that moved the lease of a claim last.
func (t *task) lastLease(claim *journal.Event) *journal.Event {
	leases := t.leasesOf(claim)
	return leases[len(leases)-1]
}

// leaseEnd is when a lease is over at the latest. Where the journal does not show how leases are moved, an executor
// that crashed may have moved it in its last moment.
func (c *checker) leaseEnd(t *task, claim *journal.Event) time.Time {
	end := c.inJournal(t.lastLease(claim).Due)
	if len(t.leases) > 0 {
		return end
	}
	if r := t.run(claim.Version); r != nil {
		if crash := c.crashed[r.begin.Node]; crash != nil {
			end = latest(end, crash.At.Add(c.rules.TTR))
		}
	}
	return end
}
