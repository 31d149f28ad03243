package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// From probationAt crashes on a task is on probation: it may lose its process once beside another such task. From
// soloAt on, or when the next loss is the last, it runs beside none.
const (
	probationAt = 2
	soloAt      = 3
)

// quarantinedAlone (8): each loss that counts for a quarantine is the task's own. After three losses no loss happens
// beside another task on probation in the same process. At one loss at least the task was running. A loss that no task
// caused, because the process was cut off or ended from outside, excuses the last: a task that is only claimed, or
// waits for its result to be stored, meets such a loss too.
func (c *checker) quarantinedAlone() {
	var probation []claim
	for _, o := range c.claims {
		if o.CrashCount >= probationAt && !o.elsewhere() {
			probation = append(probation, o)
		}
	}
	ends := c.processEnds()
	for _, t := range c.ordered {
		if !c.isQuarantined(t) {
			continue
		}
		ran := false
		var losses []*journal.Event
		for _, o := range probation {
			if o.task != t || o.next == nil || o.next.CrashCount == o.CrashCount {
				continue
			}
			end, gone := ends[o.process()]
			losses = append(losses, o.Event)
			if o.run != nil {
				losses = append(losses, o.run.begin, o.run.end)
			}
			losses = append(losses, end, o.next)
			// Otherwise the process was cut off or stuck by then, and crashed because of something else.
			crashed := gone && o.covers(end.At, c.rules.Blur)
			ran = ran || !crashed || c.isKilled(end) || o.run != nil && o.run.end == nil
			for _, other := range probation {
				beside := other.task != t && other.process() == o.process() && (c.solo(o) || c.solo(other))
				if crashed && beside && other.covers(end.At, c.rules.Blur) && !c.isSpent(other, end.At) {
					what := fmt.Sprintf("it is quarantined for a loss beside task %d, on probation too", other.ID)
					c.report(8, t.id, what, o.Event, o.next, other.Event, other.next)
				}
			}
		}
		if !ran {
			c.report(8, t.id, "it is quarantined, and ran at none of the losses that count", losses...)
		}
	}
}

// solo reports whether no other task on probation may run beside this one.
func (c *checker) solo(o claim) bool { return o.CrashCount >= min(soloAt, c.rules.Quarantine-1) }

// processEnds returns how the processes that have claimed something crashed. Those that were cut off or stuck are left
// out.
func (c *checker) processEnds() map[string]*journal.Event {
	ends := map[string]*journal.Event{}
	for _, o := range c.claims {
		if o.run != nil && c.crashed[o.run.begin.Node] != nil {
			ends[o.process()] = c.crashed[o.run.begin.Node]
		}
	}
	return ends
}

// isKilled reports whether a fault ended the process that crashed, and not one of its tasks.
func (c *checker) isKilled(crash *journal.Event) bool {
	return slices.ContainsFunc(c.faults, func(s *span) bool {
		return s.ended(journal.OK) && s.end.Key == crash.Node && slices.Contains(c.rules.Killers, s.end.Detail)
	})
}

// isSpent reports whether by the moment the processor had returned and the lease was over: then the process had
// released a task whose result it could not store.
func (c *checker) isSpent(o claim, at time.Time) bool {
	return o.run != nil && o.run.end != nil && !o.run.end.At.After(at) && c.leaseEnd(o).Before(at)
}
