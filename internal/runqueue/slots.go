package runqueue

import (
	"cmp"
	"slices"
	"time"
)

// SlotWait is how long a claimed row may wait for a slot. By then its tag's quick tasks have become slow, and another
// process can run the row.
const SlotWait = 500 * time.Millisecond

// Slots lets claimed rows run: as many at once as the queue's concurrency, and of a tag as many as the tag's allows. A
// prefetched row waits here until a slot is free. The best of all tags comes first.
type Slots struct {
	queue   *Queue
	running int  // slots that run a row
	waiting int  // rows that wait for one
	late    bool // the backlog has had the last turn
}

// Enter gives a row whose time has come a slot to run in. When none is free it returns false, and the row waits until
// Leave returns it or Expel does.
func (s *Slots) Enter(it *Item) bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.claims.countClaimedAhead(it, false)
	s.queue.tags.activate(it.tag)
	it.Entered = time.Now()
	if s.admits(it.tag) {
		s.admit(it)
		return true
	}
	it.tag.waiters(it.Backlog).add(it)
	s.waiting++
	return false
}

// Leave gives the slot back, once, and returns the rows that run now, the best first. There may be two: one in the
// slot that became free, and one of another tag that may have more slots now.
func (s *Slots) Leave(it *Item) (next []*Item) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if !it.running {
		return nil
	}
	it.running = false
	it.tag.running--
	it.tag.rate.ended++
	s.running--
	s.queue.claims.rate.ended++
	for other := s.admitNext(); other != nil; other = s.admitNext() {
		next = append(next, other)
	}
	if len(s.queue.ready.waiting) > 0 {
		s.queue.ClaimWake.Set() // the claimer may have looked since Yield, while the row still ran
	}
	return next
}

// Expel takes out the rows that have waited for a slot since before the moment, and those that must not start any
// more. Released soon, they are not taken for crashed by a rescue.
func (s *Slots) Expel(since time.Time, isOver func(*Item) bool) (out []*Item) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.waiting == 0 {
		return nil
	}
	for _, tag := range s.queue.tags.active {
		for _, it := range slices.Concat(tag.waiting.items, tag.waitingLate.items) {
			if it.Entered.Before(since) || isOver(it) {
				s.remove(it)
				out = append(out, it)
			}
		}
	}
	return out
}

// admits reports whether a row of the tag may run now. A tag that was closed keeps the slots that it had.
func (s *Slots) admits(tag *tagQueue) bool {
	c := &s.queue.claims
	return s.running < c.concurrency && tag.running < min(tag.slots, c.fair(s.running-tag.running))
}

func (s *Slots) admit(it *Item) {
	it.running = true
	it.tag.running++
	s.running++
}

// admitNext admits the best of the rows that wait. What is due now and the backlog take turns, as they do in claims.
func (s *Slots) admitNext() *Item {
	if s.waiting == 0 {
		return nil
	}
	s.late = !s.late
	it := cmp.Or(s.best(s.late), s.best(!s.late))
	if it == nil {
		return nil
	}
	s.remove(it)
	s.admit(it)
	it.TagFull = it.tag.running >= it.tag.slots && s.running < s.queue.claims.concurrency
	return it
}

func (s *Slots) best(backlog bool) *Item {
	before := byPriority
	if backlog {
		before = byDue
	}
	return s.queue.tags.best(func(tag *tagQueue) *Item {
		if !s.admits(tag) {
			return nil
		}
		return tag.waiters(backlog).head()
	}, before)
}

func (s *Slots) remove(it *Item) {
	it.in.remove(it)
	s.waiting--
}

// waiters returns the heap where rows of the tag wait for a slot.
func (t *tagQueue) waiters(backlog bool) *itemHeap {
	if backlog {
		return &t.waitingLate
	}
	return &t.waiting
}
