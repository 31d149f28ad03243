package judge

import (
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

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
