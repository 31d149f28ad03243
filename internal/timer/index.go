package timer

import "github.com/delaytask/delaytask/internal/timer/offheap"

// index finds the place of an entry in the heap by its id. It is an open-addressing table of places that holds no ids:
// the ids stand in the entries. That takes 5 to 11 bytes per entry, a fifth of what a map from id to place would.
type index struct {
	slots []uint32 // place + 1; 0 is empty; the length is a power of two or zero; from offheap
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

// slotOf returns the slot of an id whose place is known. It looks at no entry, which is what makes moving entries
// cheap.
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
	x.slots = offheap.Make[uint32](size)
	for _, s := range old {
		if s != 0 {
			place := int(s - 1)
			x.put(entries.at(place).ID, place)
		}
	}
	offheap.Free(old)
}

// rebuild indexes all entries anew.
func (x *index) rebuild(entries *pages) {
	size := minSlots
	for entries.len*4 > size*3 {
		size *= 2
	}
	if size == len(x.slots) {
		clear(x.slots)
	} else {
		offheap.Free(x.slots)
		x.slots = offheap.Make[uint32](size)
	}
	x.used = entries.len
	for place := range entries.len {
		x.put(entries.at(place).ID, place)
	}
}
