package judge

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// rescued (8): after the faults, a lease that is over is ended within the bound. No lease is taken before it is over. A
// lost lease costs a crash and no attempt.
func (c *checker) rescued() {
	for _, o := range c.claims {
		if o.next != nil && o.next.CrashCount != o.CrashCount {
			c.crashIsFair(o)
		}
		c.endedInTime(o)
	}
}

// endedInTime compares every lease of a claim with the bound. An executor that comes back and moves a lease late does
// not excuse that the lease was not ended before.
func (c *checker) endedInTime(o claim) {
	from, to, drained := c.bounded()
	if !drained {
		return
	}
	leases := o.leases()
	for i, lease := range leases {
		over, ends, last := c.inJournal(lease.Due), to, i == len(leases)-1
		switch {
		case !last:
			ends = leases[i+1].At
		case o.next != nil:
			ends = o.next.At
		}
		if last {
			over = c.leaseEnd(o)
		}
		bound := latest(from.Add(c.rules.Hold), over).Add(c.rules.Rescue)
		if ends.After(bound) {
			late := ends.Sub(bound) + c.rules.Rescue
			c.report(8, o.ID, fmt.Sprintf("its lease was over for %v and was not ended", late), lease, o.next)
		}
		if last && o.next != nil && o.next.CrashCount > o.CrashCount {
			c.counts.rescue(ends.Sub(latest(c.drain.At, over)), over.After(from.Add(c.rules.Hold)))
		}
	}
}

func (c *checker) crashIsFair(o claim) {
	if o.next.CrashCount != o.CrashCount+1 || o.next.Attempt != max(o.Attempt-1, 0) {
		c.report(8, o.ID, "a lost lease took it from "+describe(o.Event, o.next), o.Event, o.next)
	}
	if lease := o.lastLease(); clock(o.next).Before(lease.Due) {
		early := lease.Due.Sub(clock(o.next))
		c.report(8, o.ID, fmt.Sprintf("its lease was taken %v before it was over", early), o.Event, lease, o.next)
	}
}

// leaseEnd is when a lease is over at the latest. Where the journal does not show how leases are moved, an executor
// that crashed may have moved it in its last moment.
func (c *checker) leaseEnd(o claim) time.Time {
	end := c.inJournal(o.lastLease().Due)
	if len(o.task.leases) > 0 || o.run == nil || c.crashed[o.run.begin.Node] == nil {
		return end
	}
	return latest(end, c.crashed[o.run.begin.Node].At.Add(c.rules.TTR))
}

// stopsAreFree (11): only an attempt that has failed, or whose token was not answered in time, is spent. An attempt
// that a graceful stop ends is given back, and without a fault in its way, before the node is gone.
func (c *checker) stopsAreFree() {
	for _, o := range c.claims {
		if o.next == nil || o.next.Status != pending && o.next.Status != failed || o.next.CrashCount != o.CrashCount {
			continue // what a lost lease costs is invariant 8
		}
		switch o.next.Attempt {
		case max(o.Attempt-1, 0):
		case o.Attempt:
			c.spentFairly(o)
		default:
			c.report(11, o.ID, "it went from "+describe(o.Event, o.next), o.Event, o.next)
		}
	}
	for _, s := range c.stops {
		c.leavesNothing(s)
	}
}

// spentFairly: the spent attempt was used.
func (c *checker) spentFairly(o claim) {
	switch {
	case o.elsewhere(), o.run.ended(journal.Failed), o.run.ended(journal.Permanent), o.run.ended(journal.Panicked):
	case o.run == nil || o.run.end == nil:
		c.report(11, o.ID, "an attempt was spent that has not ended", o.Event, o.next)
	default:
		c.report(11, o.ID, "an attempt was spent that has not failed", o.Event, o.run.begin, o.run.end, o.next)
	}
}

// leavesNothing: what a node still ran when it was stopped in quiet times is not left for a rescue.
func (c *checker) leavesNothing(s *span) {
	if !s.ended(journal.OK) || c.disturbed(s) {
		return
	}
	for _, o := range c.claims {
		if o.run == nil || o.run.begin.Node != s.begin.Node || o.elsewhere() {
			continue
		}
		if o.next == nil || o.next.At.After(s.end.At.Add(c.rules.Blur)) {
			c.report(11, o.ID, "a node has stopped and left it behind", s.begin, s.end, o.run.begin, o.next)
		}
	}
}

// aftermath is how long a fault that is over may still show: a call that hangs is given up after 10 s.
const aftermath = 15 * time.Second

// disturbed reports whether a fault may have been in the way of a stop.
func (c *checker) disturbed(s *span) bool {
	for _, f := range c.faults {
		last := f.begin
		if f.end != nil {
			last = f.end
		}
		over := last.At.Before(s.begin.At.Add(-aftermath))
		if !over && !f.begin.At.After(s.end.At) {
			return true
		}
	}
	return false
}
