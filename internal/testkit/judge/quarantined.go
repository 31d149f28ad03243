package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// From suspectAt crashes on a task is a suspect: beside others of them it may lose its process once. From loneAt on, or
// when the next loss is the last, it runs beside none.
const (
	suspectAt = 2
	loneAt    = 3
)

// hold is a suspect's claim and the transition that ended it, nil where none did.
type hold struct {
	task        *task
	claim, next *journal.Event
}

// quarantinedAlone (8): each loss that counts for a quarantine is the task's own. Once it has lost three processes none
// is met beside another suspect in the same process, and at one of all at least the task was running. A loss that no
// task caused, because the process was cut off or ended from outside, excuses that: a task that has only been claimed,
// or waits for its result to be stored, meets it as well.
func (c *court) quarantinedAlone() {
	held := c.suspects()
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
			crashed := gone && h.covers(end.At, c.rules.Blur) // else it was cut off or stuck by then, and died of something else
			r := t.run(h.claim.Version)
			ran = ran || !crashed || c.isKilled(end) || r != nil && r.end == nil
			for _, o := range c.beside(h, held) {
				if crashed && (c.alone(h) || c.alone(o)) && o.covers(end.At, c.rules.Blur) && !c.isSpent(o, end.At) {
					c.breach(8, t.id, fmt.Sprintf("it is quarantined for a loss beside task %d, which was a suspect too", o.task.id),
						h.claim, h.next, o.claim, o.next)
				}
			}
		}
		if !ran {
			c.breach(8, t.id, "it is quarantined, and ran at none of the losses that count", t.last())
		}
	}
}

// alone reports whether no other suspect may run beside this one.
func (c *court) alone(h hold) bool { return h.claim.CrashCount >= min(loneAt, c.rules.Quarantine-1) }

// suspects returns the claims of suspects, by task. One that is in the hand of a caller, or of a token's holder,
// crashes nobody.
func (c *court) suspects() map[int64][]hold {
	held := map[int64][]hold{}
	for _, t := range c.byID() {
		for i, w := range t.writes {
			if w.Status == executing && w.CrashCount >= suspectAt && !strings.HasPrefix(w.Executor, popMark) && !t.passedOn(w.Version) {
				held[t.id] = append(held[t.id], hold{task: t, claim: w, next: t.next(i)})
			}
		}
	}
	return held
}

// beside returns what other suspects the process of a claim has had.
func (c *court) beside(h hold, held map[int64][]hold) (others []hold) {
	for _, t := range c.byID() {
		for _, o := range held[t.id] {
			if t != h.task && process(o.claim) == process(h.claim) {
				others = append(others, o)
			}
		}
	}
	return others
}

// covers reports whether the hold had begun before the moment and had not ended.
func (h hold) covers(at time.Time, blur time.Duration) bool {
	return h.claim.At.Before(at.Add(-blur)) && (h.next == nil || h.next.At.After(at.Add(blur)))
}

// processEnds returns how the processes that have claimed something crashed. Those that were cut off or stuck are left
// out.
func (c *court) processEnds() map[string]*journal.Event {
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
func (c *court) isKilled(crash *journal.Event) bool {
	return slices.ContainsFunc(c.faults, func(s *span) bool {
		return s.end != nil && s.end.Key == crash.Node && s.end.Error == journal.OK && slices.Contains(c.rules.Killers, s.end.Detail)
	})
}

// process is what all claims of a process have in common: the executor without the number of the claim.
func process(claim *journal.Event) string {
	name := claim.Executor
	return name[:max(strings.LastIndexByte(name, ':'), 0)]
}

// isSpent reports whether the processor had returned by the moment and the lease was over, so that the process had let
// go of a task whose result it could not store.
func (c *court) isSpent(h hold, at time.Time) bool {
	r := h.task.run(h.claim.Version)
	return r != nil && r.end != nil && !r.end.At.After(at) && c.leaseEnd(h.task, h.claim).Before(at)
}
