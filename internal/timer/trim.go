package timer

import "math/rand/v2"

// Trim keeps the n entries that are due first and hands the others to dropped, in no order. It may be called after every Set: it
// acts only when the heap has outgrown n by an eighth, so its cost, one pass over all entries, is spread over many calls.
// Dropped must not use the heap.
func (h *Heap) Trim(n int, dropped func(Entry)) {
	if h.Len() <= n+n/8 {
		return
	}
	h.partition(n)
	for i := n; i < h.Len(); i++ {
		dropped(*h.entries.at(i))
	}
	h.entries.cut(n)
	h.places.rebuild(&h.entries)
	h.heapify()
}

// partition brings the n first entries to the places below n (quickselect), leaving order and index to be rebuilt.
func (h *Heap) partition(n int) {
	lo, hi := 0, h.Len()-1
	for lo < hi {
		i, j := h.split(lo, hi)
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}

// split parts the places lo to hi around a random pivot: what stands up to j is not after it, what stands from i on is not before
// it, and anything between is the pivot itself.
func (h *Heap) split(lo, hi int) (i, j int) {
	pivot := *h.entries.at(lo + rand.IntN(hi-lo+1))
	i, j = lo, hi
	for i <= j {
		for h.entries.at(i).before(&pivot) {
			i++
		}
		for pivot.before(h.entries.at(j)) {
			j--
		}
		if i <= j {
			h.entries.swap(i, j)
			i++
			j--
		}
	}
	return i, j
}

// heapify restores the order of the heap, from the last parent to the root.
func (h *Heap) heapify() {
	parents := (h.Len() - 1 + arity - 1) / arity
	for i := parents - 1; i >= 0; i-- {
		e := *h.entries.at(i)
		h.put(h.places.slotOf(e.ID, i), h.sink(i, &e), e)
	}
}
