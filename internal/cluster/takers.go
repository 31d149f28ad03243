package cluster

import (
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
)

// takers has the positions of the servers that take the rows of each hash slot: the one that owns them, and its
// successors.
type takers [ids.HashSlots][Turns]int16

// divide divides the slots among servers with these numbers, by rendezvous hashing. A server that joins or leaves takes
// or gives its own slots, and hardly any other changes its owner: nodes see it at different moments. None owns more
// than its part, rounded up.
func divide(numbers []int) *takers {
	t := new(takers)
	most := (ids.HashSlots + len(numbers) - 1) / len(numbers)
	owned := make([]int, len(numbers))
	for slot := range t {
		best := [1 + Turns]int{} // the first for the owner
		for i := range best {
			best[i] = -1
		}
		scores := [1 + Turns]uint64{}
		for at, number := range numbers {
			score := rendezvous(slot, number)
			if owned[at] < most && (best[0] < 0 || score > scores[0]) {
				best[0], scores[0] = at, score
			}
			for rank, held := 1, at; rank <= Turns; rank++ {
				if best[rank] < 0 || score > scores[rank] {
					best[rank], held = held, best[rank]
					scores[rank], score = score, scores[rank]
				}
				if held < 0 {
					break
				}
			}
		}
		owned[best[0]]++
		t[slot] = order(best)
	}
	return t
}

// parts returns which slots the server at the position takes within one turn, within two, and so on.
func (t *takers) parts(position int) *[Turns]row.Share {
	var p [Turns]row.Share
	for slot, positions := range t {
		for turn, at := range positions {
			if int(at) != position {
				continue
			}
			for i := range p[turn:] {
				p[turn+i].Add(slot)
			}
			break
		}
	}
	return &p
}

// order returns the owner, and others by their scores. Where there are no more, it is the owner again.
func order(best [1 + Turns]int) (o [Turns]int16) {
	turn := 0
	for _, at := range best {
		if turn < Turns && at >= 0 && (turn == 0 || at != best[0]) {
			o[turn] = int16(at)
			turn++
		}
	}
	for ; turn < Turns; turn++ {
		o[turn] = int16(best[0])
	}
	return o
}

// rendezvous is the score of a server for a slot: the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
func rendezvous(slot, number int) uint64 {
	x := uint64(slot+1)*0x9e3779b97f4a7c15 + uint64(number+1)*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
