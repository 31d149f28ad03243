package save

import (
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// halves finds the saving that the database refuses.
func (s *Saver) halves(items []*saving, err error) []*saving {
	if len(items) == 1 {
		s.refused(items[0], err)
		return nil
	}
	half := len(items) / 2
	return slices.Concat(s.insert(items[:half]), s.insert(items[half:])) // not appended: these share an array, and alone reads it
}

// refused answers a saving that the database refuses for what is in it, and says which row that is where it can be told.
func (s *Saver) refused(it *saving, err error) {
	if it.rows() == 1 || it.unsure {
		it.answer(err)
		return
	}
	var places []int
	for i := range it.drafts {
		if d := &it.drafts[i]; !d.met && d.twin == nil {
			places = append(places, i)
		}
	}
	for len(places) > 1 {
		half := places[:len(places)/2]
		if s.wouldRefuse(it, half) {
			places = half
		} else {
			places = places[len(half):]
		}
	}
	if !s.wouldRefuse(it, places) {
		it.answer(err) // it is refused for all of its rows together
		return
	}
	it.drafts[places[0]].err = err
	it.refuse(places[0])
}

// wouldRefuse asks the database about some of the rows without storing any: a statement with an id that comes twice in it cannot
// succeed, whatever else is in it.
func (s *Saver) wouldRefuse(it *saving, places []int) bool {
	ctx, cancel := s.Call()
	defer cancel()
	rows := make([]row.Row, 0, len(places)+1)
	for _, i := range places {
		rows = append(rows, it.drafts[i].row)
	}
	return row.ClassOf(s.Store.Insert(ctx, nil, append(rows, rows[0]))) == row.ClassCaller
}

// maxRefusals is how often a saving is sent again although something that cannot be read back is in its way.
const maxRefusals = 4

// readBack answers the rows of a refused statement from what the table holds, and returns what nothing stands against. Where the
// database goes on refusing a saving and shows nothing that is in its way, such as a task that cannot be decoded, the refusal is
// the answer.
func (s *Saver) readBack(items []*saving, refusal error) (again []*saving) {
	ctx, cancel := s.Call()
	defer cancel()
	ids, keys := names(items)
	rows, broken, err := s.Store.Get(ctx, nil, ids)
	if err != nil {
		s.Failed("reading back a refused save", err)
		return items
	}
	active, err := s.Store.FindActive(ctx, nil, keys)
	if err != nil {
		s.Failed("reading back a refused save", err)
		return items
	}
	found := findings{byID: map[int64]*row.Row{}, byKey: holdersOf(active)}
	for i := range rows {
		found.byID[rows[i].ID] = &rows[i]
	}
	for _, b := range broken {
		found.byID[b.ID] = &row.Row{}
	}
	progress := false
	for _, it := range items {
		changed, left := s.compare(it, found)
		progress = progress || changed
		if left {
			again = append(again, it)
		}
	}
	switch {
	case progress:
		return again
	case len(items) > 1:
		return s.alone(items)
	}
	if items[0].refusals++; items[0].refusals > maxRefusals {
		items[0].answer(refusal)
		return nil
	}
	return again
}

// findings are what the table holds under the ids and the keys of rows that were refused.
type findings struct {
	byID  map[int64]*row.Row
	byKey map[row.TagKey]int64
}

// compare says of each row what it has met. It reports whether it met anything, and whether there is still something to send.
func (s *Saver) compare(it *saving, found findings) (changed, left bool) {
	conflict := -1
	for i := range it.drafts {
		d := &it.drafts[i]
		if d.met || d.twin != nil {
			continue
		}
		other, taken := found.byID[d.row.ID]
		holder, met := found.byKey[d.key()]
		switch {
		case taken && d.isIn(other, it.unsure):
			d.met = true
			switch other.Status {
			case row.Pending: // the promise of the save that was stored counts, which may be another one's
				s.Committed(other.Sighting())
			case row.Executing:
			default:
				it.freeKey(d)
			}
		case taken && !d.drawn:
			d.err = processor.ErrConflict
			if conflict < 0 {
				conflict = i
			}
		case met && d.row.Key != "":
			s.duplicate(d, holder)
		case taken: // a plain INSERT took our next number
			if !it.redraw(d, s.IDs.Next()) {
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
		it.refuse(conflict)
		return true, false
	case !left:
		s.stored([]*saving{it})
	}
	return changed, left
}

func names(items []*saving) (ids []int64, keys []row.TagKey) {
	for _, it := range items {
		for d := range it.open() {
			ids = append(ids, d.row.ID)
			if d.row.Key != "" {
				keys = append(keys, d.key())
			}
		}
	}
	return ids, keys
}
