package engine

import "container/heap"

// byPriority orders what is due now: larger priority first, then the earlier due time, then the id.
func byPriority(a, b *item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return byDue(a, b)
}

// byDue orders what is not due yet: whatever its priority, nothing may start before its time.
func byDue(a, b *item) bool {
	if a.Due != b.Due {
		return a.Due < b.Due
	}
	return a.ID < b.ID
}

// queue holds rows of one tag, the best of them first. Each knows its place, so that it can be taken out of the middle. A row is
// in one queue at a time.
type queue struct {
	items  []*item
	before func(a, b *item) bool
}

// head returns the best row, nil when there is none.
func (q *queue) head() *item {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

func (q *queue) add(it *item)    { heap.Push(q, it) }
func (q *queue) take() *item     { return heap.Pop(q).(*item) }
func (q *queue) remove(it *item) { heap.Remove(q, it.index) }
func (q *queue) clear()          { q.items = nil }

// The methods of [heap.Interface].

func (q *queue) Len() int           { return len(q.items) }
func (q *queue) Less(i, j int) bool { return q.before(q.items[i], q.items[j]) }
func (q *queue) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].index, q.items[j].index = i, j
}

func (q *queue) Push(x any) {
	it := x.(*item)
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
