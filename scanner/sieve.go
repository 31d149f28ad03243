package scanner

import "github.com/delaytask/delaytask/internal/row"

// spared is how many rows of others a node that helps out passes over, because those others have them in memory by now: the oldest.
const spared = 2000

// sieve parts the rows that a node finds overdue from those that it leaves to others. Were all nodes to claim what all of them read,
// most claims would be in vain. A node's own share comes first. A row of others that was still there a moment later is run by
// whoever sees it, and one whose own share is used up helps with what the others will not get to soon.
type sieve struct {
	helps bool            // it has no more rows of its own
	left  map[int64]int64 // rows that were left to others in the last turn, and their versions; no more than are spared

	own    int             // rows in this turn
	others int             // rows that were left to others
	leave  map[int64]int64 // the first of those
}

// sift returns the rows that this node runs.
func (s *sieve) sift(rows []row.Due, mine func(id int64, tag string) bool) []row.Due {
	var taken []row.Due
	for _, d := range rows {
		if mine(d.ID, d.Tag) {
			s.own++
			taken = append(taken, d)
			continue
		}
		version, waited := s.left[d.ID]
		if waited && version == d.Version || s.helps && s.others >= spared {
			taken = append(taken, d)
			continue
		}
		s.others++
		if s.leave == nil {
			s.leave = make(map[int64]int64)
		}
		if len(s.leave) < spared {
			s.leave[d.ID] = d.Version
		}
	}
	return taken
}

// next begins another turn, unless nothing is left. It comes after a wait when all that the last one has met is left to others, or
// when that one came to the end of the rows; otherwise at once, and then what it left has not waited.
func (s *sieve) next(more bool) (again, wait bool) {
	wait = s.others > 0 && (!more || s.own == 0)
	again = more || wait
	last := *s
	*s = sieve{}
	if wait {
		s.helps, s.left = last.own == 0, last.leave
	}
	return again, wait
}

// forget begins anew.
func (s *sieve) forget() { *s = sieve{} }
