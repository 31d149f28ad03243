// Package timer keeps the tasks that will be due soon, earliest first. It is a cache of the table and nothing more: whatever is
// dropped from it is found again by a read.
//
// A million entries take about 40 MB, index included, outside of the collector's heap, which would take as much again for garbage
// (docs/adr/0013-timers.md). Growing and shrinking copy no entries. Two calls take longer than the others, a few milliseconds at
// 250,000 entries: the Set that doubles the index, and the Trim that acts.
package timer

import (
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer/offheap"
)

// Entry is one armed timer. It holds no pointers: the collector does not look into the heap.
type Entry struct {
	ID       int64
	Version  int64    // the version of the row as it was seen
	Due      row.Time // on the database's clock
	Tag      uint32   // the number that the heap's owner gave to the tag
	Priority int8
	Crashes  uint8 // leases that the row has lost with its executors; 255 for more
	Backlog  bool  // the row was found overdue and waits in the backlog's line
	Own      bool  // fires here whatever the shares of the nodes say by then
}

// before is the order of the heap. Ties are broken by id, so that equal due times always leave in the same order.
func (e *Entry) before(f *Entry) bool {
	return e.Due < f.Due || e.Due == f.Due && e.ID < f.ID
}

// arity is the number of children of a node. Eight halve the time of a pop from a large heap compared with two, because a third
// of the levels means a third of the entries moved and of the index updates; four are close behind.
const arity = 8

// Heap is a priority queue of entries by due time in which every entry can also be found by its id. The zero value is an empty
// heap. It is not safe for concurrent use: its owner locks, and calls Clear when it needs the heap no more.
type Heap struct {
	entries pages
	places  index
}

// Len returns the number of entries.
func (h *Heap) Len() int { return h.entries.len }

// Clear takes all entries out and gives all memory back, which the collector cannot do. The heap may be filled again.
func (h *Heap) Clear() {
	h.entries.keep(0)
	offheap.Free(h.places.slots)
	*h = Heap{}
}

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

// Peek returns the entry that is due first.
func (h *Heap) Peek() (Entry, bool) {
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
