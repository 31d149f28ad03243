package timer

// settle writes e to its right place: place i, or from there up or down. Slot is where the index holds e.
func (h *Heap) settle(slot, i int, e Entry) {
	to := h.rise(i, &e)
	if to == i {
		to = h.sink(i, &e)
	}
	h.put(slot, to, e)
}

func (h *Heap) put(slot, place int, e Entry) {
	*h.entries.at(place) = e
	h.places.set(slot, place)
}

// rise moves the ancestors of place i that come after e one level down and returns the place that becomes free.
func (h *Heap) rise(i int, e *Entry) int {
	for i > 0 {
		parent := (i - 1) / arity
		p := h.entries.at(parent)
		if !e.before(p) {
			break
		}
		h.relocate(p, parent, i)
		i = parent
	}
	return i
}

// sink moves the first of the children of place i, level by level, up while it comes before e, and returns the place that
// becomes free.
func (h *Heap) sink(i int, e *Entry) int {
	for {
		child := h.firstChild(i)
		if child < 0 {
			return i
		}
		c := h.entries.at(child)
		if !c.before(e) {
			return i
		}
		h.relocate(c, child, i)
		i = child
	}
}

// firstChild returns the child of place i that is due first, or -1 when it has none.
func (h *Heap) firstChild(i int) int {
	child := i*arity + 1
	if child >= h.Len() {
		return -1
	}
	first := child
	for end := min(child+arity, h.Len()); child < end; child++ {
		if h.entries.at(child).before(h.entries.at(first)) {
			first = child
		}
	}
	return first
}

func (h *Heap) relocate(e *Entry, from, to int) {
	h.put(h.places.slotOf(e.ID, from), to, *e)
}
