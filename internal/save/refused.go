package save

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// halve finds the request that the database refuses.
func (s *Saver) halve(
	ctx context.Context, requests []*request, locked func([]*request) []*request, err error,
) []*request {
	if len(requests) == 1 {
		s.refused(requests[0], err)
		return nil
	}
	half := len(requests) / 2
	// Not appended: the halves share an array, and sendAlone reads it.
	return slices.Concat(s.insert(ctx, requests[:half], locked), s.insert(ctx, requests[half:], locked))
}

// refused answers a request that the database refuses for its content, and names the row if it can be found.
func (s *Saver) refused(r *request, err error) {
	if r.count() == 1 || r.unsure {
		r.answer(err)
		return
	}
	var places []int
	for i := range r.rows {
		if n := &r.rows[i]; !n.met && n.duplicateOf == nil {
			places = append(places, i)
		}
	}
	for len(places) > 1 {
		half := places[:len(places)/2]
		if s.wouldRefuse(r, half) {
			places = half
		} else {
			places = places[len(half):]
		}
	}
	if !s.wouldRefuse(r, places) {
		r.answer(err) // it is refused for all of its rows together
		return
	}
	r.rows[places[0]].err = err
	r.refuse(places[0])
}

// maxRefusals is how often a request is sent again although what it collides with cannot be read back.
const maxRefusals = 4

// readBack answers the rows of a refused statement from what the table holds, and returns the requests that nothing
// stands against. The refusal is the answer if the database goes on refusing a request without a visible reason.
func (s *Saver) readBack(requests []*request, refusal error) (again []*request) {
	ctx, cancel := s.Call()
	defer cancel()
	ids, keys := idsAndKeys(requests)
	rows, broken, err := s.Store.Get(ctx, nil, ids)
	if err != nil {
		s.Failed("reading back a refused save", err)
		return requests
	}
	active, err := s.Store.FindActive(ctx, nil, keys)
	if err != nil {
		s.Failed("reading back a refused save", err)
		return requests
	}
	found := findings{byID: map[int64]*row.Row{}, byKey: idsByKey(active)}
	for i := range rows {
		found.byID[rows[i].ID] = &rows[i]
	}
	for _, b := range broken {
		found.byID[b.ID] = &row.Row{}
	}
	progress := false
	for _, r := range requests {
		changed, left := s.compare(r, found)
		progress = progress || changed
		if left {
			again = append(again, r)
		}
	}
	switch {
	case progress:
		return again
	case len(requests) > 1:
		return s.sendAlone(requests)
	}
	if requests[0].refusals++; requests[0].refusals > maxRefusals {
		if len(keys) > 0 { // each time another task may have had the key, and have ended before it was read
			refusal = fmt.Errorf("%w: %w", delaytask.ErrContended, refusal)
		}
		requests[0].answer(refusal)
		return nil
	}
	return again
}

// findings are what the table holds under the ids and the keys of rows that were refused.
type findings struct {
	byID  map[int64]*row.Row
	byKey map[row.TagKey]int64
}

// compare decides for each row what it has met in the table. It reports whether any row has an answer now, and whether
// rows are left to send.
func (s *Saver) compare(r *request, found findings) (changed, left bool) {
	conflict := -1
	for i := range r.rows {
		n := &r.rows[i]
		if n.met || n.duplicateOf != nil {
			continue
		}
		other, taken := found.byID[n.row.ID]
		holder, met := found.byKey[n.key()]
		switch {
		case taken && n.isIn(other, r.unsure):
			n.met = true
			s.Stored(other)
			switch other.Status {
			case row.Pending: // the stored due time counts; an earlier save may have set it
				s.Committed(other.Sighting())
			case row.Executing:
			default:
				r.freeKey(n)
			}
		case taken && !n.drawn && (!met || holder != n.row.ID || !n.reschedules):
			n.err = delaytask.ErrConflict
			if conflict < 0 {
				conflict = i
			}
		case met && n.row.Key != "":
			s.duplicate(n, holder)
		case taken: // a plain INSERT has taken the id
			if !r.redraw(n, s.NextID()) {
				return true, false
			}
			left = true
		default:
			left = true
			continue
		}
		changed = true
	}
	switch {
	case conflict >= 0:
		r.refuse(conflict)
		return true, false
	case !left:
		s.stored([]*request{r})
	}
	return changed, left
}

func idsAndKeys(requests []*request) (ids []int64, keys []row.TagKey) {
	for _, r := range requests {
		for n := range r.remaining() {
			ids = append(ids, n.row.ID)
			if n.row.Key != "" {
				keys = append(keys, n.key())
			}
		}
	}
	return ids, keys
}
