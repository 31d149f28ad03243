package runqueue

import (
	"container/heap"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// Item is a due row on its way through a ready queue, a claim and a slot.
type Item struct {
	timer.Entry
	Fired   row.Time  // when it came into its ready queue
	Entered time.Time // when it asked for a slot to run in; zero for one that goes to a pop
	ForPop  bool      // it goes to a waiting pop instead of a worker
	Tries   int       // claims that failed; the caller counts them
	Attempt any       // what the caller makes of the row once it is claimed

	tag     *tagQueue
	early   bool      // it was not nearly due when it came, and waits in a queue of its own
	ahead   bool      // it takes a place ahead of its due time
	claimed bool      // it takes one of the places that workers' rows are claimed for
	running bool      // it has a slot
	in      *itemHeap // that it waits in, nil outside of one
	index   int       // its place there
	lent    int64     // the version that the holder of a token has, 0 without one
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

// head returns the best row, nil when there is none.
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
