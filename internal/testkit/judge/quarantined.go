package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// From probationAt crashes on a task is on probation: it may lose its process once beside another such task. From
// soloAt on, or when the next loss is the last, it runs beside none.
const (
	probationAt = 2
	soloAt      = 3
)

// owned is a claim of a task on probation and the transition that ended it, nil where none did.
type owned struct {
	task        *task
	claim, next *journal.Event
}

// quarantinedAlone (8): each loss that counts for a quarantine is the task's own. After three losses no loss happens
// beside another task on probation in the same process. At one loss at least the task was running. A loss that no task
// caused, because the process was cut off or ended from outside, excuses the last: a task that is only claimed, or
// waits for its result to be stored, meets such a loss too.
func (c *checker) quarantinedAlone() {
	held := c.onProbation()
	ends := c.processEnds()
	for _, t := range c.byID() {
		if !isQuarantined(t) {
			continue
		}
		ran := false
		for _, h := range held[t.id] {
			if h.next == nil || h.next.CrashCount == h.claim.CrashCount {
				continue
			}
			end, gone := ends[process(h.claim)]
			// Otherwise the process was cut off or stuck by then, and crashed because of something else.
			crashed := gone && h.covers(end.At, c.rules.Blur)
			r := t.run(h.claim.Version)
			ran = ran || !crashed || c.isKilled(end) || r != nil && r.end == nil
			for _, o := range c.beside(h, held) {
				if crashed && (c.solo(h) || c.solo(o)) && o.covers(end.At, c.rules.Blur) && !c.isSpent(o, end.At) {
					what := fmt.Sprintf("it is quarantined for a loss beside task %d, on probation too", o.task.id)
					c.report(8, t.id, what, h.claim, h.next, o.claim, o.next)
				}
			}
		}
		if !ran {
			c.report(8, t.id, "it is quarantined, and ran at none of the losses that count", t.last())
		}
	}
}

// solo reports whether no other task on probation may run beside this one.
func (c *checker) solo(h owned) bool { return h.claim.CrashCount >= min(soloAt, c.rules.Quarantine-1) }

// onProbation returns the claims of tasks on probation, by task. A task that a caller has popped, or whose token was
// handed over, crashes no process.
func (c *checker) onProbation() map[int64][]owned {
	held := map[int64][]owned{}
	for _, t := range c.byID() {
		for i, w := range t.writes {
			elsewhere := strings.HasPrefix(w.Executor, popMark) || t.passedOn(w.Version)
			if w.Status == executing && w.CrashCount >= probationAt && !elsewhere {
				held[t.id] = append(held[t.id], owned{task: t, claim: w, next: t.next(i)})
			}
		}
	}
	return held
}

// beside returns the claims of other tasks on probation by the process of a claim.
func (c *checker) beside(h owned, held map[int64][]owned) (others []owned) {
	for _, t := range c.byID() {
		for _, o := range held[t.id] {
			if t != h.task && process(o.claim) == process(h.claim) {
				others = append(others, o)
			}
		}
	}
	return others
}

// covers reports whether the claim was before the moment and had not ended.
func (h owned) covers(at time.Time, blur time.Duration) bool {
	return h.claim.At.Before(at.Add(-blur)) && (h.next == nil || h.next.At.After(at.Add(blur)))
}

// processEnds returns how the processes that have claimed something crashed. Those that were cut off or stuck are left
// out.
func (c *checker) processEnds() map[string]*journal.Event {
	ends := map[string]*journal.Event{}
	for _, t := range c.byID() {
		for _, w := range t.writes {
			if r := t.run(w.Version); r != nil && w.Status == executing && c.crashed[r.begin.Node] != nil {
				ends[process(w)] = c.crashed[r.begin.Node]
			}
		}
	}
	return ends
}

// isKilled reports whether a fault ended the process that crashed, and not one of its tasks.
func (c *checker) isKilled(crash *journal.Event) bool {
	return slices.ContainsFunc(c.faults, func(s *span) bool {
		return s.end != nil && s.end.Key == crash.Node && s.end.Error == journal.OK &&
			slices.Contains(c.rules.Killers, s.end.Detail)
	})
}

// process is what all claims of a process have in common: the executor without the number of the claim.
func process(claim *journal.Event) string {
	name := claim.Executor
	return name[:max(strings.LastIndexByte(name, ':'), 0)]
}

// isSpent reports whether by the moment the processor had returned and the lease was over: then the process had
// released a task whose result it could not store.
func (c *checker) isSpent(h owned, at time.Time) bool {
	r := h.task.run(h.claim.Version)
	return r != nil && r.end != nil && !r.end.At.After(at) && c.leaseEnd(h.task, h.claim).Before(at)
}
