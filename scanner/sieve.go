package scanner

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// spared is how many rows of others a node that helps out passes over, because those others have them in memory by now:
// the oldest.
const spared = 2000

// stuckAfter is how long a row of others is left to them by a node that has rows of its own.
const stuckAfter = 3 * overdue

// soon is long enough for rows that were handed over to be claimed, so that they are not read again.
const soon = 100 * time.Millisecond

// sieve parts the rows that a node finds overdue from those that it leaves to others. Were all nodes to claim what all
// of them read, most claims would be in vain. A node's own share comes first. A row of others that was still there a
// moment later is run by whoever sees it, and one whose own share is used up helps with what the others will not get to
// soon.
type sieve struct {
	helps bool           // it has no more rows of its own
	left  map[int64]left // rows that were left to others in the last turn; no more than are spared

	own    int            // rows in this turn
	others int            // rows that were left to others
	leave  map[int64]left // the first of those
}

// left is a row that is left to others.
type left struct {
	version int64
	since   time.Time
}

// sift returns the rows that this node runs.
func (s *sieve) sift(rows []row.Due, mine func(id int64, tag string) bool) []row.Due {
	now := time.Now()
	var taken []row.Due
	for _, d := range rows {
		if mine(d.ID, d.Tag) {
			s.own++
			taken = append(taken, d)
			continue
		}
		l, waited := s.left[d.ID]
		if !waited || l.version != d.Version {
			l, waited = left{d.Version, now}, false
		}
		if waited && (s.helps || now.Sub(l.since) >= stuckAfter) || s.helps && s.others >= spared {
			taken = append(taken, d)
			continue
		}
		s.others++
		if s.leave == nil {
			s.leave = make(map[int64]left)
		}
		if len(s.leave) < spared {
			s.leave[d.ID] = l
		}
	}
	return taken
}

// next begins another turn, unless nothing is left. When the last one has met nothing but others' rows, it comes after
// the time that these get, and helps with what is still there. When that one came to the end of the rows and has met
// some of its own, it comes soon: others of its own may have grown overdue meanwhile. In the middle of the rows it
// comes at once.
func (s *sieve) next(more bool) (again bool, wait time.Duration) {
	last := *s
	*s = sieve{}
	switch {
	case last.others > 0 && last.own == 0:
		s.helps, s.left = true, last.leave
		return true, overdue
	case last.others > 0 && !more:
		s.left = last.leave
		return true, soon
	}
	return more, 0
}

// forget begins anew.
func (s *sieve) forget() { *s = sieve{} }
