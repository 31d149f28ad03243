package runqueue

import (
	"container/heap"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue/timer"
)

// Tags are free text, and callers may use new ones at any time. So each claim goes through the active tags alone. A tag
// that is neither served nor active is forgotten.

// tagQueue is what waits of one tag, and what runs of it.
type tagQueue struct {
	name   string
	number uint32 // that the entries of timers carry
	armed  int    // timers
	active bool   // it is among those that each claim walks through
	open   bool   // served here and not paused
	limit  int    // slots that the tag may take; 0 while it is closed
	looked bool   // a pop has read the table for this tag since pops began to wait for it

	upcoming itemHeap  // not nearly due
	now      itemHeap  // due now, or nearly
	arrived  []*Item   // the rows of now as they came; some have left
	backlog  []*Item   // oldest first
	awaited  time.Time // when a scan last waited for room in the backlog, with rows that are older

	claimed       int // rows that are claimed for a slot, or being claimed
	counted       int // places that count as the tag's beside other tags
	claimedAhead  int // places that rows take ahead of their due times
	rate          rate
	prefetchLimit int // rows that may be claimed beyond the slots now
	pops          demand

	slots       int // the limit, also after the tag was closed
	running     int // slots that run a row
	waiting     itemHeap
	waitingLate itemHeap // of the backlog
}

func newTagQueue(name string, number uint32) *tagQueue {
	return &tagQueue{
		name: name, number: number, upcoming: itemHeap{before: byDue}, now: itemHeap{before: byPriority},
		waiting: itemHeap{before: byPriority}, waitingLate: itemHeap{before: byDue},
	}
}

// isIdle reports whether nothing of the tag waits, runs, or has ended lately.
func (t *tagQueue) isIdle() bool {
	return t.claimed == 0 && t.running == 0 && t.pops.reserved == 0 && t.rate.isZero() &&
		t.upcoming.Len() == 0 && t.now.Len() == 0 && len(t.arrived) == 0 && len(t.backlog) == 0 &&
		t.waiting.Len() == 0 && t.waitingLate.Len() == 0
}

func (t *tagQueue) clear() {
	t.upcoming.clear()
	t.now.clear()
	t.arrived, t.backlog = nil, nil
}

// tagTable finds the queues of tags by name and by number.
type tagTable struct {
	byName   map[string]*tagQueue
	byNumber []*tagQueue // nil where a number is free
	free     []uint32    // numbers of tags that were forgotten
	active   []*tagQueue
	next     int // of active that the backlog's round goes on with
}

// get returns the queue of the tag. A caller that leaves it without anything to do calls forget.
func (t *tagTable) get(name string) *tagQueue {
	tag, known := t.byName[name]
	if known {
		return tag
	}
	if n := len(t.free); n > 0 {
		tag = newTagQueue(name, t.free[n-1])
		t.free = t.free[:n-1]
		t.byNumber[tag.number] = tag
	} else {
		tag = newTagQueue(name, uint32(len(t.byNumber)))
		t.byNumber = append(t.byNumber, tag)
	}
	t.byName[name] = tag
	return tag
}

// activate lets claims walk through the tag.
func (t *tagTable) activate(tag *tagQueue) {
	if !tag.active {
		tag.active = true
		t.active = append(t.active, tag)
	}
}

// idle takes the tags that are at rest out of the active ones. The backlog's round goes on where it was.
func (t *tagTable) idle() {
	kept, next := t.active[:0], t.next
	for i, tag := range t.active {
		if !tag.isIdle() {
			kept = append(kept, tag)
			continue
		}
		tag.active = false
		if i < t.next {
			next--
		}
		t.forget(tag)
	}
	clear(t.active[len(kept):])
	t.active, t.next = kept, next
}

// inTurn returns the tag whose turn it is in the backlog's round.
func (t *tagTable) inTurn() *tagQueue {
	if t.next >= len(t.active) {
		t.next = 0
	}
	t.next++
	return t.active[t.next-1]
}

// best returns the best of what the active tags offer, nil when none offers anything.
func (t *tagTable) best(offer func(*tagQueue) *Item, before func(a, b *Item) bool) (best *Item) {
	for _, tag := range t.active {
		if it := offer(tag); it != nil && (best == nil || before(it, best)) {
			best = it
		}
	}
	return best
}

// forget forgets a tag that is closed and at rest, and that no timer and no pop wants.
func (t *tagTable) forget(tag *tagQueue) {
	if tag.open || tag.active || tag.armed > 0 || tag.pops.wanted > 0 || t.byName[tag.name] != tag {
		return
	}
	delete(t.byName, tag.name)
	t.byNumber[tag.number] = nil
	t.free = append(t.free, tag.number)
}

// Item is a due row on its way through a ready queue, a claim and a slot.
type Item struct {
	timer.Entry
	Fired   row.Time  // when it came into its ready queue
	Entered time.Time // when it asked for a slot to run in; zero for one that goes to a pop
	ForPop  bool      // it goes to a waiting pop instead of a slot
	Tries   int       // claims that failed; the caller counts them
	Attempt any       // what the caller makes of the row once it is claimed

	// What tells later why the row was late.
	Found    bool                 // a read of the table found it due, no timer
	TagFull  bool                 // it got the last place of its tag while the process had others
	Hindered delaytask.LateReason // why a claim of it failed; the caller notes it

	tag          *tagQueue
	upcoming     bool      // it was not nearly due when it came, and waits in tag.upcoming
	claimedAhead bool      // it takes a place ahead of its due time
	claimed      bool      // it takes a place of a slot
	running      bool      // it has a slot
	in           *itemHeap // that it waits in, nil outside of one
	index        int       // its place there
	lent         int64     // the version that the holder of its token has, 0 without one
}

// Tag returns the name of its tag. It hides the number that the timer's entry has.
func (it *Item) Tag() string { return it.tag.name }

func (it *Item) onProbation() bool { return it.Crashes >= ProbationAt }

// byPriority orders what is due now: larger priority first, then the earlier due time, then the id.
func byPriority(a, b *Item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return byDue(a, b)
}

// byDue orders what is not due yet: whatever its priority, nothing may start before its time.
func byDue(a, b *Item) bool {
	if a.Due != b.Due {
		return a.Due < b.Due
	}
	return a.ID < b.ID
}

// itemHeap holds rows of one tag, the best first. Each row knows its place, so it can leave from the middle. A row is
// in one heap at a time.
type itemHeap struct {
	items  []*Item
	before func(a, b *Item) bool
}

// head returns the best row, or nil.
func (q *itemHeap) head() *Item {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

func (q *itemHeap) add(it *Item)    { heap.Push(q, it) }
func (q *itemHeap) take() *Item     { return heap.Pop(q).(*Item) }
func (q *itemHeap) remove(it *Item) { heap.Remove(q, it.index) }
func (q *itemHeap) clear()          { q.items = nil }

// The methods of [heap.Interface].

func (q *itemHeap) Len() int           { return len(q.items) }
func (q *itemHeap) Less(i, j int) bool { return q.before(q.items[i], q.items[j]) }
func (q *itemHeap) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].index, q.items[j].index = i, j
}

func (q *itemHeap) Push(x any) {
	it := x.(*Item)
	it.in, it.index = q, len(q.items)
	q.items = append(q.items, it)
}

func (q *itemHeap) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = nil
	it.in = nil
	q.items = q.items[:last]
	return it
}
