package runqueue

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// ready holds the rows that are due, or soon will be, and wait for a place. Picks go in turn to what has just become
// due, by priority and due time, and to the backlog, tag after tag. While both have rows, each gets half of the free
// places. A backlog alone leaves some to what falls due meanwhile. Rows on probation have a queue of their own, and
// half of what the timely rows get.
type ready struct {
	tags      *tagTable
	claims    *claims
	waiting   map[int64]*Item
	probation probation

	backlogTurn bool // the backlog gets the next odd place
	othersTurn  bool // rows that are not on probation get the next odd place
}

// push lets a row wait for a place. It forgets a row of a tag that is closed by now.
func (r *ready) push(it *Item) {
	if !it.tag.open {
		r.tags.forget(it.tag)
		return
	}
	r.waiting[it.ID] = it
	r.enqueue(it)
}

func (r *ready) enqueue(it *Item) {
	r.tags.activate(it.tag)
	switch {
	case it.upcoming:
		it.tag.upcoming.add(it)
	case it.onProbation():
		r.probation.push(it)
	case it.Backlog:
		it.tag.backlog = append(it.tag.backlog, it)
	default:
		it.tag.now.add(it)
		it.tag.arrived = append(it.tag.arrived, it)
	}
}

// makeReady lets rows wait with what is due now that are due by near. It returns when the next upcoming row is due, and
// whether it made any ready.
func (r *ready) makeReady(near row.Time) (next row.Time, some bool) {
	next = row.MaxTime
	for _, tag := range r.tags.active {
		for it := tag.upcoming.head(); it != nil; it = tag.upcoming.head() {
			if it.Due > near {
				next = min(next, it.Due)
				break
			}
			tag.upcoming.take()
			it.upcoming, some = false, true
			r.enqueue(it)
		}
	}
	return next, some
}

// awaitsFor is how long a scan counts as waiting for room that does not ask again.
const awaitsFor = 100 * time.Millisecond

// age moves rows that found no place in time to the backlog of their tag. The backlog of a tag is bounded by the
// parameter most, or by what the tag runs in a second if that is more, so that a quick tag need not read rows again.
// The rest is dropped, because the table has it: a tag that gets more than it can run neither starves others nor fills
// the memory. age reports whether rows were dropped.
func (r *ready) age(before row.Time, most int) (forgotten bool) {
	for _, tag := range r.tags.active {
		most := max(most, tag.rate.within(time.Second))
		if time.Since(tag.awaited) < awaitsFor {
			most = 0
		}
		for len(tag.arrived) > 0 && (tag.arrived[0].in != &tag.now || tag.arrived[0].Due < before) {
			it := tag.arrived[0]
			tag.arrived[0] = nil
			tag.arrived = tag.arrived[1:]
			if it.in != &tag.now {
				continue
			}
			tag.now.remove(it)
			if len(tag.backlog) < most {
				it.Backlog = true
				tag.backlog = append(tag.backlog, it)
			} else {
				delete(r.waiting, it.ID)
				forgotten = true
			}
		}
	}
	return forgotten
}

func (r *ready) drop(it *Item) {
	delete(r.waiting, it.ID)
	isIt := func(other *Item) bool { return other == it }
	switch {
	case it.in != nil:
		it.in.remove(it)
	case it.onProbation():
		r.probation.drop(isIt)
	default:
		it.tag.backlog = slices.DeleteFunc(it.tag.backlog, isIt)
	}
}

// dropTag forgets all rows of a tag that wait.
func (r *ready) dropTag(tag *tagQueue) {
	onProbation := r.probation.drop(func(it *Item) bool { return it.tag == tag })
	for _, it := range slices.Concat(tag.upcoming.items, tag.now.items, tag.backlog, onProbation) {
		delete(r.waiting, it.ID)
	}
	tag.clear()
}

// dropOthers forgets the rows of the backlog that are not this node's.
func (r *ready) dropOthers(mine func(id int64, tag string) bool) {
	for _, tag := range r.tags.active {
		tag.backlog = slices.DeleteFunc(tag.backlog, func(it *Item) bool {
			if mine(it.ID, tag.name) {
				return false
			}
			delete(r.waiting, it.ID)
			return true
		})
	}
}

func (r *ready) clear() {
	clear(r.waiting)
	r.probation.clear()
	for _, tag := range r.tags.active {
		tag.clear()
	}
}

const (
	// backlogLeaves is the part of the slots that a backlog leaves to what falls due meanwhile.
	backlogLeaves = 8
	// probationLeaves is the part of the slots that rows on probation leave to others.
	probationLeaves = 2
)

// pick takes up to most rows, either of the backlog or timely ones, each with a place.
func (r *ready) pick(most int, backlog bool) []*Item {
	both := r.hasTakeable(!backlog)
	free := r.claims.concurrency + r.claims.prefetchLimit - r.claims.claimed
	if backlog && !both {
		free -= r.claims.concurrency / backlogLeaves
	}
	n := max(free, 0) + r.claims.pops.left()
	if n <= 0 || len(r.waiting) == 0 {
		return nil
	}
	share := n
	if both {
		share = n / 2
		if n%2 == 1 && r.backlogTurn == backlog {
			share++
			r.backlogTurn = !r.backlogTurn
		}
	}
	n = min(most, share)
	if backlog {
		return r.pickBacklog(n)
	}
	onProbation := r.pickProbation(nil, r.probationShare(n))
	picked := append(r.pickTimely(n-len(onProbation)), onProbation...)
	return r.pickProbation(picked, n-len(picked))
}

// probationShare returns how many of n places rows on probation get before others: half, and every other odd one.
// Otherwise a stream of younger tasks that takes all slots would let them wait for ever.
func (r *ready) probationShare(n int) int {
	share := n / probationLeaves
	if n%2 == 1 && !r.probation.empty() {
		if r.othersTurn = !r.othersTurn; r.othersTurn {
			share++
		}
	}
	return share
}

// hasTakeable reports whether the backlog, or the timely rows, have one that could be claimed.
func (r *ready) hasTakeable(backlog bool) bool {
	return slices.ContainsFunc(r.tags.active, func(tag *tagQueue) bool {
		if backlog {
			return len(tag.backlog) > 0 && r.claims.hasTaker(tag)
		}
		return tag.now.Len() > 0 && r.claims.hasTaker(tag) || tag.upcoming.Len() > 0 && r.claims.mayClaimAhead(tag)
	})
}

// pickTimely takes what is due now, and then what soon will be, as far as that may take places.
func (r *ready) pickTimely(n int) []*Item {
	now := func(tag *tagQueue) *itemHeap { return &tag.now }
	upcoming := func(tag *tagQueue) *itemHeap { return &tag.upcoming }
	picked := r.pickBest(nil, n, now, r.claims.hasTaker, byPriority)
	return r.pickBest(picked, n-len(picked), upcoming, r.claims.mayClaimAhead, byDue)
}

// pickBest takes the best rows that wait in one heap of each tag, of the tags that may have one.
func (r *ready) pickBest(
	picked []*Item, n int, of func(*tagQueue) *itemHeap, may func(*tagQueue) bool, before func(a, b *Item) bool,
) []*Item {
	for ; n > 0; n-- {
		best := r.tags.best(func(tag *tagQueue) *Item {
			if of(tag).Len() == 0 || !may(tag) {
				return nil
			}
			return of(tag).head()
		}, before)
		if best == nil {
			break
		}
		best.in.remove(best)
		picked = append(picked, r.take(best))
	}
	return picked
}

func (r *ready) pickProbation(picked []*Item, n int) []*Item {
	may := func(it *Item) bool { return r.claims.hasTaker(it.tag) }
	for ; n > 0; n-- {
		it := r.probation.pick(may, r.claims.concurrency/probationLeaves)
		if it == nil {
			break
		}
		picked = append(picked, r.take(it))
	}
	return picked
}

// pickBacklog goes round the tags, one row each.
func (r *ready) pickBacklog(n int) (picked []*Item) {
	for idle := 0; n > 0 && idle < len(r.tags.active); {
		tag := r.tags.inTurn()
		if len(tag.backlog) == 0 || !r.claims.hasTaker(tag) {
			idle++
			continue
		}
		idle = 0
		it := tag.backlog[0]
		tag.backlog[0] = nil
		tag.backlog = tag.backlog[1:]
		picked = append(picked, r.take(it))
		n--
	}
	return picked
}

// take gives a place to a row that has left its queue.
func (r *ready) take(it *Item) *Item {
	delete(r.waiting, it.ID)
	r.tags.activate(it.tag)
	r.claims.take(it)
	return it
}
