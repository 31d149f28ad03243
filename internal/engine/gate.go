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
func (h *hands) enter(u *run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.hold(u.item, false)
	h.lines.stir(u.item.line)
	u.ready = time.Now()
	if h.lines.admits(u.item.line) {
		h.lines.admit(u)
		return true
	}
	u.item.run = u
	u.item.line.gate(u.item.Backlog).add(u.item)
	h.lines.ready++
	return false
}

// leave gives the slot back, once, and returns the rows that are admitted now, the best first. There may be two: in the slot that
// became free, and in one that was kept free of a tag which may have more now.
func (h *hands) leave(u *run) (next []*run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !u.admitted {
		return nil
	}
	u.admitted = false
	u.item.line.running--
	u.item.line.flow.ended++
	h.lines.running--
	h.lines.flow.ended++
	for v := h.lines.admitNext(); v != nil; v = h.lines.admitNext() {
		next = append(next, v)
	}
	if len(h.lines.waiting) > 0 {
		signal(h.claimWake) // the claimer may have looked since the place was given back, while the row still ran
	}
	return next
}

// impatient takes out the rows that have waited for a slot since before the moment, and those that would not start in one any more: the
// sooner they are released, the fewer of them a rescue takes for crashed.
func (h *hands) impatient(since time.Time) []*run {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines.ready == 0 {
		return nil
	}
	var taken []*run
	for _, line := range h.lines.working {
		for _, it := range slices.Concat(line.ready.items, line.readyLate.items) {
			if it.run.ready.Before(since) || it.run.isOver() {
				taken = append(taken, h.lines.unready(it))
			}
		}
	}
	return taken
}

// admits reports whether there is a slot to run a row of the tag in. A tag that was closed keeps the slots that it had.
func (l *lines) admits(line *tagLine) bool {
	return l.running < l.workers && line.running < min(line.slots, l.fair(l.running-line.running))
}

func (l *lines) admit(u *run) {
	u.admitted = true
	u.item.line.running++
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
func (l *lines) admitNext() *run {
	if l.ready == 0 {
		return nil
	}
	l.gateTurn = !l.gateTurn
	it := cmp.Or(l.bestReady(l.gateTurn), l.bestReady(!l.gateTurn))
	if it == nil {
		return nil
	}
	u := l.unready(it)
	l.admit(u)
	return u
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

func (l *lines) unready(it *item) *run {
	it.in.remove(it)
	l.ready--
	u := it.run
	it.run = nil
	return u
}
