package memstore

import (
	"iter"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// blockSize bounds the cost of an insertion, which moves half a block on average.
const blockSize = 512

// index is a sorted list of rows, cut into blocks, none of them empty. The zero value is an empty index.
type index struct {
	blocks [][]row.Place
}

// find returns the block and the place in it where e is or belongs, and whether it is there.
func (x *index) find(e row.Place) (block, place int, found bool) {
	byLast := func(b []row.Place, e row.Place) int { return b[len(b)-1].Compare(e) }
	block, _ = slices.BinarySearchFunc(x.blocks, e, byLast)
	if block == len(x.blocks) {
		return block, 0, false
	}
	place, found = slices.BinarySearchFunc(x.blocks[block], e, row.Place.Compare)
	return block, place, found
}

func (x *index) insert(e row.Place) {
	block, place, _ := x.find(e)
	if block == len(x.blocks) {
		if block == 0 {
			x.blocks = [][]row.Place{{e}}
			return
		}
		block--
		place = len(x.blocks[block])
	}
	b := slices.Insert(x.blocks[block], place, e)
	x.blocks[block] = b
	if len(b) > blockSize {
		half := len(b) / 2
		x.blocks = slices.Insert(x.blocks, block+1, slices.Clone(b[half:]))
		x.blocks[block] = b[:half]
	}
}

func (x *index) remove(e row.Place) {
	block, place, found := x.find(e)
	if !found {
		return
	}
	if b := slices.Delete(x.blocks[block], place, place+1); len(b) > 0 {
		x.blocks[block] = b
	} else {
		x.blocks = slices.Delete(x.blocks, block, block+1)
	}
}

func (x *index) len() int {
	n := 0
	for _, b := range x.blocks {
		n += len(b)
	}
	return n
}

// after yields the entries after e, in order.
func (x *index) after(e row.Place) iter.Seq[row.Place] {
	return func(yield func(row.Place) bool) {
		block, place, found := x.find(e)
		if found {
			place++
		}
		for ; block < len(x.blocks); block++ {
			for _, e := range x.blocks[block][place:] {
				if !yield(e) {
					return
				}
			}
			place = 0
		}
	}
}

// of returns the entries of a window.
func (x *index) of(w row.Window) []row.Place {
	return x.where(row.Place{Due: w.From, ID: w.AfterID}, w.To, w.Limit, w.Has)
}

// between returns up to limit entries after the given one that are due before the bound.
func (x *index) between(after row.Place, bound row.Time, limit int) []row.Place {
	return x.where(after, bound, limit, func(int64) bool { return true })
}

func (x *index) where(after row.Place, bound row.Time, limit int, has func(id int64) bool) []row.Place {
	var found []row.Place
	for e := range x.after(after) {
		if len(found) >= limit || e.Due >= bound {
			break
		}
		if has(e.ID) {
			found = append(found, e)
		}
	}
	return found
}

// backward yields all entries, the last one first.
func (x *index) backward() iter.Seq[row.Place] {
	return func(yield func(row.Place) bool) {
		for _, b := range slices.Backward(x.blocks) {
			for _, e := range slices.Backward(b) {
				if !yield(e) {
					return
				}
			}
		}
	}
}
