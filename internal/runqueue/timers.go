package runqueue

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// fire moves all timers that are due within the lead's window into the lines, once the first one is due within its first limit,
// and what is nearly due in line with what is due now. It returns how long it is until there is something to do again.
func (h *Queue) Fire(now row.Time, lead Window, mine func(timer.Entry, string) bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	soon := now.Add(lead.Near)
	if head, ok := h.heap.Peek(); ok && head.Due <= now.Add(lead.First) {
		h.pour(now, soon, now.Add(lead.Last), mine)
		h.ClaimWake.Set()
	}
	next, promoted := h.lines.promote(soon)
	if promoted {
		h.ClaimWake.Set()
	}
	wait := next.Sub(soon)
	if head, ok := h.heap.Peek(); ok {
		wait = min(wait, head.Due.Sub(now.Add(lead.First)))
	}
	return max(wait, 0)
}

// pour moves the timers that are due at window, or before, into the lines.
func (h *Queue) pour(now, soon, window row.Time, mine func(timer.Entry, string) bool) {
	for {
		e, ok := h.heap.PopBefore(window)
		if !ok {
			return
		}
		line := h.lines.byNumber[e.Tag]
		if mine(e, line.tag) {
			h.lines.push(&Item{Entry: e, line: line, Fired: now, early: e.Crashes < ProbationAt && e.Due > soon})
		}
		h.disarmed(e)
	}
}

// set arms a timer, or replaces the one of the same row.
func (h *Queue) set(e timer.Entry) {
	if old, armed := h.heap.Get(e.ID); armed {
		defer h.disarmed(old)
	}
	h.heap.Set(e)
	h.lines.byNumber[e.Tag].armed++
}

// disarmed notes that a timer has left the heap.
func (h *Queue) disarmed(e timer.Entry) {
	line := h.lines.byNumber[e.Tag]
	line.armed--
	h.lines.forget(line)
}
