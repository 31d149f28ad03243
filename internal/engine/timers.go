package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// timers sleeps until the head of the heap is due, minus the lead, and moves everything that is due within the lead into the
// lines. Because tasks are claimed ahead of their time, one statement claims many of them, and each still starts on its own
// millisecond.
type timers struct {
	*core
	arm  *armer
	lead *lead
}

// insurance bounds a sleep: the machine may have been suspended, or the clock has found its anchor again.
const insurance = time.Second

// unanchoredWait is how often what is due looks whether the clock has found its anchor again.
const unanchoredWait = 10 * time.Millisecond

func (t *timers) loop(ctx context.Context) {
	for {
		wait := t.fire()
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-t.hands.timerWake:
		case <-ctx.Done():
			alarm.Stop()
			return
		}
		alarm.Stop()
	}
}

// fire moves what is due into the lines and returns how long the loop may sleep.
func (t *timers) fire() time.Duration {
	now, anchored := t.clock.AtLeast()
	if !anchored {
		return unanchoredWait
	}
	return min(t.hands.fire(now, t.lead.span(), t.stillMine), insurance)
}

// stillMine is asked once more when a timer fires: nodes come and go, and a tag may have been paused meanwhile.
func (t *timers) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return t.arm.tags.open(tag)
	}
	return t.arm.mine(e.ID, e.Due, tag)
}

// fire moves all timers that are due within the lead's window into the lines, once the first one is due within its first limit,
// and what is nearly due in line with what is due now. It returns how long it is until there is something to do again.
func (h *hands) fire(now row.Time, lead span, mine func(timer.Entry, string) bool) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	soon := now.Add(lead.tight)
	if head, ok := h.heap.Peek(); ok && head.Due <= now.Add(lead.first) {
		h.pour(now, soon, now.Add(lead.window), mine)
		h.claimWake.set()
	}
	next, promoted := h.lines.promote(soon)
	if promoted {
		h.claimWake.set()
	}
	wait := next.Sub(soon)
	if head, ok := h.heap.Peek(); ok {
		wait = min(wait, head.Due.Sub(now.Add(lead.first)))
	}
	return max(wait, 0)
}

// pour moves the timers that are due at window, or before, into the lines.
func (h *hands) pour(now, soon, window row.Time, mine func(timer.Entry, string) bool) {
	for {
		e, ok := h.heap.PopBefore(window)
		if !ok {
			return
		}
		line := h.lines.byNumber[e.Tag]
		if mine(e, line.tag) {
			h.lines.push(&item{Entry: e, line: line, fired: now, early: e.Crashes < suspectAt && e.Due > soon})
		}
		h.disarmed(e)
	}
}

// set arms a timer, or replaces the one of the same row.
func (h *hands) set(e timer.Entry) {
	if old, armed := h.heap.Get(e.ID); armed {
		defer h.disarmed(old)
	}
	h.heap.Set(e)
	h.lines.byNumber[e.Tag].armed++
}

// disarmed notes that a timer has left the heap.
func (h *hands) disarmed(e timer.Entry) {
	line := h.lines.byNumber[e.Tag]
	line.armed--
	h.lines.forget(line)
}
