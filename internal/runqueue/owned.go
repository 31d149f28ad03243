package runqueue

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Pick takes up to most rows that have a place, either of the backlog or timely ones. This process owns them until
// Release.
func (q *Queue) Pick(most int, now row.Time, backlog bool) []*Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims.measure(time.Now())
	if q.ready.age(now.Add(-Overdue), q.limits.Backlog) {
		q.ScanWake.Set()
	}
	picked := q.ready.pick(most, backlog)
	for _, it := range picked {
		q.owned[it.ID] = it
	}
	return picked
}

// Owns reports whether this process owns the row.
func (q *Queue) Owns(id int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, owned := q.owned[id]
	return owned
}

// Lend notes that the holder of a token has the row at the version. A crash of this process does not count against it
// any more.
func (q *Queue) Lend(it *Item, version int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it.lent = version
	q.yield(it, Turn)
}

// Share is what an owned row takes from others.
type Share uint8

const (
	// Slot is the place that the row was claimed for, of a worker or a pop.
	Slot Share = 1 << iota
	// Turn is its turn on probation.
	Turn
)

// Yield lets a row give up shares: its slot when it needs none any more, its turn when a crash of this process would
// not count against it. The row stays owned. Yield is safe to call more than once.
func (q *Queue) Yield(it *Item, what Share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.yield(it, what)
}

func (q *Queue) yield(it *Item, what Share) {
	slot := what&Slot != 0 && q.claims.giveBack(it)
	turn := what&Turn != 0 && q.ready.probation.exonerate(it)
	if slot || turn {
		q.ClaimWake.Set()
	}
}

// Reason is why this process owns a row no longer.
type Reason uint8

const (
	// Ended says that another process has the row, or that its result is stored.
	Ended Reason = iota
	// Proven is Ended for a row that has run here and will not again: it did no harm.
	Proven
	// Unclaimed says that the row was not claimed. It goes back to its ready queue.
	Unclaimed
)

// Release ends the ownership of a row, and all its shares with it. It is safe to call more than once, also when the
// row is owned anew by then.
func (q *Queue) Release(it *Item, why Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if why == Proven {
		q.ready.probation.prove(it)
	}
	if q.owned[it.ID] == it {
		delete(q.owned, it.ID)
	}
	q.yield(it, Slot|Turn)
	if why == Unclaimed {
		it.tag = q.tags.get(it.tag.name) // it had no place, so its tag may have been forgotten
		q.ready.push(it)
		q.ClaimWake.Set()
		q.TimerWake.Set() // it may have become nearly due meanwhile
	}
}
