// Package timer keeps the tasks that will be due soon, earliest first. It is a cache of the table and nothing more: a
// read finds again whatever is dropped from it.
//
// A million entries take about 40 MB with the index (docs/adr/0013-timers.md). Growing and shrinking copy no entries.
// Two calls take longer than the others, a few milliseconds at 250,000 entries: the Set that doubles the index, and the
// Trim that acts.
package timer

import (
	"math/rand/v2"

	"github.com/delaytask/delaytask/internal/row"
)

// Entry is one armed timer. It holds no pointers: the collector does not look into the heap.
type Entry struct {
	ID       int64
	Version  int64    // the version of the row as it was seen
	Due      row.Time // on the database's clock
	Tag      uint32   // the number that the heap's owner gave to the tag
	Priority int8
	Crashes  uint8 // leases that the row has lost with its executors; 255 for more
	Backlog  bool  // the row was found overdue and belongs to the backlog
	Own      bool  // fires here whatever this node's share is by then
}

// before is the order of the heap. Ties are broken by id, so that equal due times always leave in the same order.
func (e *Entry) before(f *Entry) bool {
	return e.Due < f.Due || e.Due == f.Due && e.ID < f.ID
}

// arity is the number of children of a node. Eight instead of two halve the time of a pop from a large heap: a third of
// the levels means a third of the moves and index updates. Four are nearly as good.
const arity = 8

// Heap is a priority queue of entries by due time, which also finds an entry by its id. The zero value is an empty
// heap. It is not safe for concurrent use: its owner locks.
type Heap struct {
	entries pages
	places  index
}

// Len returns the number of entries.
func (h *Heap) Len() int { return h.entries.len }

// Clear takes all entries out and gives all memory back. The heap may be filled again.
func (h *Heap) Clear() { *h = Heap{} }

// Set adds e, or lets it replace the entry with the same id.
func (h *Heap) Set(e Entry) {
	slot, i, known := h.places.find(&h.entries, e.ID)
	if !known {
		i = h.entries.grow()
		slot = h.places.insert(&h.entries, e.ID, i)
	}
	h.settle(slot, i, e)
}

// Get returns the entry with the id.
func (h *Heap) Get(id int64) (Entry, bool) {
	_, i, ok := h.places.find(&h.entries, id)
	if !ok {
		return Entry{}, false
	}
	return *h.entries.at(i), true
}

// Remove takes the entry with the id out.
func (h *Heap) Remove(id int64) (Entry, bool) {
	slot, i, ok := h.places.find(&h.entries, id)
	if !ok {
		return Entry{}, false
	}
	return h.remove(slot, i), true
}

// First returns the entry that is due first.
func (h *Heap) First() (Entry, bool) {
	if h.Len() == 0 {
		return Entry{}, false
	}
	return *h.entries.at(0), true
}

// PopBefore takes out the entry that is due first, if it is due at t or earlier.
func (h *Heap) PopBefore(t row.Time) (Entry, bool) {
	if h.Len() == 0 || h.entries.at(0).Due > t {
		return Entry{}, false
	}
	return h.remove(h.places.slotOf(h.entries.at(0).ID, 0), 0), true
}

// remove takes out the entry at place i, which the index holds in slot; the last entry fills the gap.
func (h *Heap) remove(slot, i int) Entry {
	removed := *h.entries.at(i)
	h.places.remove(&h.entries, slot)
	last := h.Len() - 1
	moved := *h.entries.at(last)
	h.entries.cut(last)
	if i != last {
		h.settle(h.places.slotOf(moved.ID, last), i, moved)
	}
	h.places.shrink(&h.entries)
	return removed
}

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

// sink moves the first of the children of place i, level by level, up while it comes before e, and returns the place
// that becomes free.
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

// Trim keeps the n entries that are due first and hands the others to dropped, in no order. It may be called after
// every Set: it acts only when the heap has outgrown n by an eighth, so its cost, one pass over all entries, is spread
// over many calls. Dropped must not use the heap.
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

// split parts the places lo to hi around a random pivot: what stands up to j is not after it, what stands from i on is
// not before it, and anything between is the pivot itself.
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

// index finds the place of an entry in the heap by its id. It is an open-addressing table of places that holds no ids:
// the ids stand in the entries. That takes 5 to 11 bytes per entry, a fifth of what a map from id to place would.
type index struct {
	slots []uint32 // place + 1; 0 is empty; the length is a power of two or zero
	used  int
}

const minSlots = 16

// home is the slot where the search for an id begins. The bits of an id have meanings and are far from random, so they
// are mixed (the finaliser of SplitMix64).
func (x *index) home(id int64) int {
	z := uint64(id)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) & uint64(len(x.slots)-1))
}

func (x *index) next(slot int) int { return (slot + 1) & (len(x.slots) - 1) }

func (x *index) set(slot, place int) { x.slots[slot] = uint32(place + 1) }

// find returns the slot and the place of an id.
func (x *index) find(entries *pages, id int64) (slot, place int, ok bool) {
	if x.used == 0 {
		return 0, 0, false
	}
	for slot = x.home(id); x.slots[slot] != 0; slot = x.next(slot) {
		place = int(x.slots[slot] - 1)
		if entries.at(place).ID == id {
			return slot, place, true
		}
	}
	return 0, 0, false
}

// slotOf returns the slot of an id whose place is known. It reads no entry, so moving entries is cheap.
func (x *index) slotOf(id int64, place int) int {
	slot := x.home(id)
	for x.slots[slot] != uint32(place+1) {
		slot = x.next(slot)
	}
	return slot
}

// insert adds an id that is not in the index and returns its slot.
func (x *index) insert(entries *pages, id int64, place int) int {
	if (x.used+1)*4 > len(x.slots)*3 {
		x.resize(entries, max(2*len(x.slots), minSlots))
	}
	x.used++
	return x.put(id, place)
}

func (x *index) put(id int64, place int) int {
	slot := x.home(id)
	for x.slots[slot] != 0 {
		slot = x.next(slot)
	}
	x.set(slot, place)
	return slot
}

// remove empties a slot and closes the gap: whatever a search would no longer reach across it moves back into it.
func (x *index) remove(entries *pages, slot int) {
	x.used--
	gap := slot
	for s := x.next(gap); x.slots[s] != 0; s = x.next(s) {
		home := x.home(entries.at(int(x.slots[s] - 1)).ID)
		mask := len(x.slots) - 1
		if (s-home)&mask >= (s-gap)&mask {
			x.slots[gap] = x.slots[s]
			gap = s
		}
	}
	x.slots[gap] = 0
}

// shrink gives memory back once seven of eight slots are empty.
func (x *index) shrink(entries *pages) {
	if len(x.slots) > minSlots && x.used*8 < len(x.slots) {
		x.resize(entries, len(x.slots)/2)
	}
}

func (x *index) resize(entries *pages, size int) {
	old := x.slots
	x.slots = make([]uint32, size)
	for _, s := range old {
		if s != 0 {
			place := int(s - 1)
			x.put(entries.at(place).ID, place)
		}
	}
}

// rebuild indexes all entries again.
func (x *index) rebuild(entries *pages) {
	size := minSlots
	for entries.len*4 > size*3 {
		size *= 2
	}
	if size == len(x.slots) {
		clear(x.slots)
	} else {
		x.slots = make([]uint32, size)
	}
	x.used = entries.len
	for place := range entries.len {
		x.put(entries.at(place).ID, place)
	}
}
