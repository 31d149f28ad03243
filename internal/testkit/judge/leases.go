package judge

import (
	"fmt"
	"strings"
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

// stopsAreFree (11): only an attempt that has failed, or whose token was not answered in time, is spent. An attempt
// that a graceful stop ends is given back, and without a fault in its way, before the node is gone.
func (c *checker) stopsAreFree() {
	for _, t := range c.byID() {
		for i, w := range t.writes {
			next := t.next(i)
			if w.Status != executing || next == nil || next.Status != pending && next.Status != failed ||
				next.CrashCount != w.CrashCount {
				continue // what a lost lease costs is invariant 8
			}
			switch next.Attempt {
			case max(w.Attempt-1, 0):
			case w.Attempt:
				c.spentFairly(t, w, next)
			default:
				c.report(11, t.id, "it went from "+describe(w, next), w, next)
			}
		}
	}
	for _, s := range c.stops {
		c.leavesNothing(s)
	}
}

// spentFairly: the spent attempt was used.
func (c *checker) spentFairly(t *task, claim, w *journal.Event) {
	if strings.HasPrefix(claim.Executor, popMark) || t.passedOn(claim.Version) {
		return
	}
	r := t.run(claim.Version)
	switch {
	case r == nil || r.end == nil:
		c.report(11, t.id, "an attempt was spent that has not ended", claim, w)
	case r.end.Error == journal.Failed, r.end.Error == journal.Permanent, r.end.Error == journal.Panicked:
	default:
		c.report(11, t.id, "an attempt was spent that has not failed", claim, r.begin, r.end, w)
	}
}

// popMark begins the executor of a task that was handed out by Pop.
const popMark = "pop:"

// passedOn reports whether the processor has passed the task on to the holder of its token.
func (t *task) passedOn(version int64) bool {
	r := t.run(version)
	return r != nil && r.end != nil && r.end.Error == journal.HandedOver
}

// leavesNothing: what a node still ran when it was stopped in quiet times is not left for a rescue.
func (c *checker) leavesNothing(s *span) {
	if s.end == nil || s.end.Error != journal.OK || c.disturbed(s) {
		return
	}
	for _, t := range c.byID() {
		for i, w := range t.writes {
			r := t.run(w.Version)
			next := t.next(i)
			if w.Status != executing || r == nil || r.begin.Node != s.begin.Node ||
				strings.HasPrefix(w.Executor, popMark) || t.passedOn(w.Version) {
				continue
			}
			if next == nil || next.At.After(s.end.At.Add(c.rules.Blur)) {
				c.report(11, t.id, "a node has stopped and left it behind", s.begin, s.end, r.begin, next)
			}
		}
	}
}

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

// aftermath is how long a fault that is over may still show: a call that hangs is given up after 10 s.
const aftermath = 15 * time.Second
