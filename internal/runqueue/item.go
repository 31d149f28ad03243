package runqueue

import (
	"container/heap"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

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

// queue holds rows of one tag, the best of them first. Each knows its place, so that it can be taken out of the middle. A row is
// in one queue at a time.
type queue struct {
	items  []*Item
	before func(a, b *Item) bool
}

// head returns the best row, nil when there is none.
func (q *queue) head() *Item {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

func (q *queue) add(it *Item)    { heap.Push(q, it) }
func (q *queue) take() *Item     { return heap.Pop(q).(*Item) }
func (q *queue) remove(it *Item) { heap.Remove(q, it.index) }
func (q *queue) clear()          { q.items = nil }

// The methods of [heap.Interface].

func (q *queue) Len() int           { return len(q.items) }
func (q *queue) Less(i, j int) bool { return q.before(q.items[i], q.items[j]) }
func (q *queue) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].index, q.items[j].index = i, j
}

func (q *queue) Push(x any) {
	it := x.(*Item)
	it.in, it.index = q, len(q.items)
	q.items = append(q.items, it)
}

func (q *queue) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = nil
	it.in = nil
	q.items = q.items[:last]
	return it
}

// item is a due row on its way through the lines, a claim and a worker.
type Item struct {
	timer.Entry
	line   *tagLine
	early  bool     // it was not nearly due when it came into its line, and waits apart
	ahead  bool     // its slot is held ahead of its due time
	slot   bool     // it occupies one of the places that rows are claimed for
	ForPop bool     // it goes to a waiting pop instead of a worker
	in     *queue   // that it waits in, nil outside of one
	index  int      // its place there
	Tries  int      // claims that failed
	Fired  row.Time // when it came into its line
	out    int64    // version that the holder of a token has, 0 while there is none: no processor here runs it

	Attempt any       // the caller's, of the claimed row
	Entered time.Time // when its time had come and it asked for a slot to run in; zero for one that goes to a pop
	running bool      // it has that slot
}

// tag returns the name of its tag.
func (it *Item) Tag() string { return it.line.tag }

func (it *Item) suspect() bool { return it.Crashes >= ProbationAt }
