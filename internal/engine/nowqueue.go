package engine

// before orders what is due now: larger priority first, then the earlier due time, then the id.
func before(a, b *item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if a.Due != b.Due {
		return a.Due < b.Due
	}
	return a.ID < b.ID
}

// nowQueue is the heap of one tag's rows that are due now.
type nowQueue []*item

func (q nowQueue) Len() int           { return len(q) }
func (q nowQueue) Less(i, j int) bool { return before(q[i], q[j]) }
func (q nowQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *nowQueue) Push(x any) {
	it := x.(*item)
	it.index = len(*q)
	*q = append(*q, it)
}

func (q *nowQueue) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	it.index = -1
	*q = old[:len(old)-1]
	return it
}
