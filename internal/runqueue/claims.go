package runqueue

import "time"

// claims counts the rows that are claimed for workers and pops, and decides for how many more there is a place. A row
// takes a place when it is picked. It gives the place back when its result is on its way to the database.
type claims struct {
	tags *tagTable
	pops *Pops

	workers       int // slots
	open          int // tags that are served here and not paused
	claimed       int // rows that are claimed for a worker, or being claimed
	counted       int // places that count as some tag's
	ahead         int // places of workers that rows take ahead of their due times
	prefetchLimit int // rows that may be claimed beyond the slots now

	rate      rate
	peers     int           // nodes that share the work, this one among them
	roundTrip time.Duration // of claims, smoothed
}

// fairness is how many slots a tag may have for each that is free.
//
// Where several tags are served, none takes all slots, whatever its tasks do. The more slots a tag has, the more have
// to be free before it gets another one. So a tag whose tasks take minutes leaves some to those whose tasks take
// milliseconds, and a second such tag finds some as well. The rule is that of dynamic thresholds in switches with a
// shared buffer (Choudhury and Hahne, 1998).
const fairness = 8

// fair returns how many slots one tag may have beside what the others have. Of 64 slots it is 56 when they have none.
// The last slot goes to a tag only as its first.
func (c *claims) fair(others int) int {
	left := c.workers - others
	switch {
	case c.open < 2:
		return c.workers
	case left <= 0:
		return 0
	default:
		return max(fairness*left/(fairness+1), 1)
	}
}

// share returns how many slots rows of the tag may be claimed for, whatever is claimed beyond the slots.
func (c *claims) share(tag *tagQueue) int { return min(tag.limit, c.fair(c.counted-tag.counted)) }

// recount renews what counts as the tag's: slots in which its rows run, or rows that are claimed for a slot and not
// beyond.
func (c *claims) recount(tag *tagQueue) {
	c.counted -= tag.counted
	tag.counted = max(tag.running, tag.claimed-tag.rate.prefetch)
	c.counted += tag.counted
}

// hasSlot reports whether a row of the tag may be claimed for a worker.
func (c *claims) hasSlot(tag *tagQueue) bool {
	return c.claimed < c.workers+c.prefetchLimit && tag.claimed < c.share(tag)+tag.prefetchLimit
}

// hasTaker reports whether a row of the tag may be claimed for a worker or a pop.
func (c *claims) hasTaker(tag *tagQueue) bool { return c.hasSlot(tag) || c.pops.takes(tag) > 0 }

// take gives the row to a worker or to a waiting pop. Where both are free they take turns.
func (c *claims) take(it *Item) {
	tag := it.tag
	it.ForPop = c.pops.takes(tag) > 0 && (tag.pops.turn || !c.hasSlot(tag))
	tag.pops.turn = !it.ForPop
	if it.ForPop {
		c.pops.reserve(tag, 1)
	} else {
		it.claimed = true
		tag.claimed++
		c.claimed++
		c.recount(tag)
	}
	c.countAhead(it, it.early)
}

// giveBack ends what take began. It reports whether the row had a place.
func (c *claims) giveBack(it *Item) bool {
	c.countAhead(it, false)
	switch {
	case it.claimed:
		it.claimed = false
		it.tag.claimed--
		c.claimed--
	case it.ForPop:
		it.ForPop = false
		c.pops.reserve(it.tag, -1)
	default:
		return false
	}
	return true
}

// keptFree returns how many of n places rows that are not due yet leave free: an eighth, at least one. Nothing runs
// in a place that such a row takes, and what is saved for now, or comes back from elsewhere, must find one.
func keptFree(n int) int { return (n + 7) / 8 }

// mayGoAhead reports whether a row of the tag may take a place before it is due.
func (c *claims) mayGoAhead(tag *tagQueue) bool {
	takers := c.share(tag) + tag.pops.wanted
	if tag.ahead >= takers-keptFree(takers)+tag.prefetchLimit {
		return false
	}
	return c.pops.takes(tag) > 0 || c.hasSlot(tag) && c.ahead < c.workers-keptFree(c.workers)+c.prefetchLimit
}

// countAhead counts a place that a row takes ahead of its due time, or one that it does no longer.
func (c *claims) countAhead(it *Item, ahead bool) {
	if it.ahead == ahead {
		return
	}
	it.ahead = ahead
	n := 1
	if !ahead {
		n = -1
	}
	it.tag.ahead += n
	if it.claimed {
		c.ahead += n
	}
}
