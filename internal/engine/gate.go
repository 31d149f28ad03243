package engine

import (
	"cmp"
	"slices"
	"time"
)

// The gate lets claimed rows run, as many at once as there are workers and as the concurrency of their tags allows. Rows may be
// claimed beyond the free slots, as far as they will find one soon (surplus.go); they wait here, the best of all tags first.

// gateWait is how long a claimed row waits for a slot. Tasks that were quick have become slow by then, and the row is given back,
// so that another process can run it.
const gateWait = 500 * time.Millisecond

// enter gives a row whose time has come a slot to run in. When there is none it returns false, and the row waits until one that
// leaves hands its slot on.
func (h *hands) enter(it *item) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.hold(it, false)
	h.lines.stir(it.line)
	it.entered = time.Now()
	if h.lines.admits(it.line) {
		h.lines.admit(it)
		return true
	}
	it.line.gate(it.Backlog).add(it)
	h.lines.ready++
	return false
}

// leave gives the slot back, once, and returns the rows that are admitted now, the best first. There may be two: in the slot that
// became free, and in one that was kept free of a tag which may have more now.
func (h *hands) leave(it *item) (next []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !it.running {
		return nil
	}
	it.running = false
	it.line.running--
	it.line.flow.ended++
	h.lines.running--
	h.lines.flow.ended++
	for other := h.lines.admitNext(); other != nil; other = h.lines.admitNext() {
		next = append(next, other)
	}
	if len(h.lines.waiting) > 0 {
		h.claimWake.set() // the claimer may have looked since the place was given back, while the row still ran
	}
	return next
}

// impatient takes out the rows that have waited for a slot since before the moment, and those that are over, because they would not start
// in one any more: the sooner they are released, the fewer of them a rescue takes for crashed.
func (h *hands) impatient(since time.Time, isOver func(*item) bool) []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines.ready == 0 {
		return nil
	}
	var taken []*item
	for _, line := range h.lines.working {
		for _, it := range slices.Concat(line.ready.items, line.readyLate.items) {
			if it.entered.Before(since) || isOver(it) {
				h.lines.unready(it)
				taken = append(taken, it)
			}
		}
	}
	return taken
}

// admits reports whether there is a slot to run a row of the tag in. A tag that was closed keeps the slots that it had.
func (l *lines) admits(line *tagLine) bool {
	return l.running < l.workers && line.running < min(line.slots, l.fair(l.running-line.running))
}

func (l *lines) admit(it *item) {
	it.running = true
	it.line.running++
	l.running++
}

// gate returns the queue in which rows of the tag wait for a slot.
func (line *tagLine) gate(backlog bool) *queue {
	if backlog {
		return &line.readyLate
	}
	return &line.ready
}

// admitNext admits the best of the rows that wait for a slot. What is due now and the backlog take turns, as in the lines.
func (l *lines) admitNext() *item {
	if l.ready == 0 {
		return nil
	}
	l.gateTurn = !l.gateTurn
	it := cmp.Or(l.bestReady(l.gateTurn), l.bestReady(!l.gateTurn))
	if it == nil {
		return nil
	}
	l.unready(it)
	l.admit(it)
	return it
}

func (l *lines) bestReady(backlog bool) *item {
	before := byPriority
	if backlog {
		before = byDue
	}
	return l.best(func(line *tagLine) *item {
		if !l.admits(line) {
			return nil
		}
		return line.gate(backlog).head()
	}, before)
}

func (l *lines) unready(it *item) {
	it.in.remove(it)
	l.ready--
}
