package runqueue

import (
	"cmp"
	"slices"
	"time"
)

// The gate lets claimed rows run, as many at once as there are workers and as the concurrency of their tags allows. Rows may be
// claimed beyond the free slots, as far as they will find one soon (surplus.go); they wait here, the best of all tags first.

// gateWait is how long a claimed row waits for a slot. Tasks that were quick have become slow by then, and the row is given back,
// so that another process can run it.
const SlotWait = 500 * time.Millisecond

// enter gives a row whose time has come a slot to run in. When there is none it returns false, and the row waits until one that
// leaves hands its slot on.
func (h *Queue) Enter(it *Item) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.hold(it, false)
	h.lines.stir(it.line)
	it.Entered = time.Now()
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
func (h *Queue) Leave(it *Item) (next []*Item) {
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
		h.ClaimWake.Set() // the claimer may have looked since the place was given back, while the row still ran
	}
	return next
}

// impatient takes out the rows that have waited for a slot since before the moment, and those that are over, because they would not start
// in one any more: the sooner they are released, the fewer of them a rescue takes for crashed.
func (h *Queue) Expel(since time.Time, isOver func(*Item) bool) []*Item {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines.ready == 0 {
		return nil
	}
	var taken []*Item
	for _, line := range h.lines.working {
		for _, it := range slices.Concat(line.ready.items, line.readyLate.items) {
			if it.Entered.Before(since) || isOver(it) {
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

func (l *lines) admit(it *Item) {
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
func (l *lines) admitNext() *Item {
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

func (l *lines) bestReady(backlog bool) *Item {
	before := byPriority
	if backlog {
		before = byDue
	}
	return l.best(func(line *tagLine) *Item {
		if !l.admits(line) {
			return nil
		}
		return line.gate(backlog).head()
	}, before)
}

func (l *lines) unready(it *Item) {
	it.in.remove(it)
	l.ready--
}

// Where several tags are served, none takes all slots, whatever its tasks do: the more it has, the more have to be free for it to
// get another. So a tag whose tasks take minutes leaves some to those whose tasks take milliseconds, and a second such tag finds
// some as well. The rule is that of dynamic thresholds in switches with a shared buffer (Choudhury and Hahne, 1998).

// fairness is how many slots a tag may have for each that is free.
const fairness = 8

// fair is how many slots one tag may have beside what the others have: 56 of 64 when they have none, and the last one only as its
// first.
func (l *lines) fair(others int) int {
	left := l.workers - others
	switch {
	case l.open < 2:
		return l.workers
	case left <= 0:
		return 0
	default:
		return max(fairness*left/(fairness+1), 1)
	}
}

// share is how many slots rows of the tag may be claimed for, whatever is claimed beyond the slots.
func (l *lines) share(line *tagLine) int { return min(line.limit, l.fair(l.held-line.held)) }

// weigh renews what the tag has: slots in which its rows run, or rows that are claimed for a slot and not beyond.
func (l *lines) weigh(line *tagLine) {
	l.held -= line.held
	line.held = max(line.running, line.busy-line.flow.surplus)
	l.held += line.held
}
