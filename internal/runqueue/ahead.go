package runqueue

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Rows that are claimed ahead of their time hold slots in which nothing runs yet. Of a tag, and of all workers, only so many may
// be held that way: what is saved for now, or comes back from elsewhere, must find one free. The rest of the rows waits in its
// own queue until it is nearly due, and then stands in line with what is due now.

// kept is how many of n slots stay free of rows that are not due yet: an eighth, at least one.
func kept(n int) int { return (n + 7) / 8 }

// mayGoAhead reports whether a row of the tag may take a slot before it is due.
func (l *lines) mayGoAhead(line *tagLine) bool {
	takers := l.share(line) + line.pops.wanted
	if line.ahead >= takers-kept(takers)+line.beyond {
		return false
	}
	return l.popsTake(line) > 0 || l.hasSlot(line) && l.ahead < l.workers-kept(l.workers)+l.beyond
}

// promote moves rows that are due at soon, or before, in line with what is due now. It reports whether there were any, and
// returns when the next row is due that is still early.
func (l *lines) promote(soon row.Time) (next row.Time, promoted bool) {
	next = row.MaxTime
	for _, line := range l.working {
		for it := line.early.head(); it != nil; it = line.early.head() {
			if it.Due > soon {
				next = min(next, it.Due)
				break
			}
			line.early.take()
			it.early, promoted = false, true
			l.enqueue(it)
		}
	}
	return next, promoted
}

// pickEarly takes rows that are not due yet, in the order of their due times, as far as slots may be held for them.
func (l *lines) pickEarly(picked []*Item, n int) []*Item {
	for ; n > 0; n-- {
		best := l.best(func(line *tagLine) *Item {
			if line.early.Len() == 0 || !l.mayGoAhead(line) {
				return nil
			}
			return line.early.head()
		}, byDue)
		if best == nil {
			break
		}
		best.line.early.remove(best)
		picked = append(picked, l.occupy(best))
	}
	return picked
}

// hold counts a slot that is held ahead of time, or one that is no longer.
func (l *lines) hold(it *Item, ahead bool) {
	if it.ahead == ahead {
		return
	}
	it.ahead = ahead
	n := 1
	if !ahead {
		n = -1
	}
	it.line.ahead += n
	if it.slot {
		l.ahead += n
	}
}

// span is the lead as it is now.
type Window struct {
	Near  time.Duration // a task that is due within it stands in line with what is due now, also for the last slots
	First time.Duration // when the first task has to be claimed
	Last  time.Duration // up to where others are taken along
}
