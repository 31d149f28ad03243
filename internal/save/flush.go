package save

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// flush stores a batch.
func (s *Saver) flush(items []*saving) {
	s.Metrics.Batch("save", rowsOf(items))
	s.send(s.answerTaken(carry(items)))
}

// looksFirst is how long after a duplicate the keys of a batch are looked up before it is sent.
const looksFirst = time.Second

// answerTaken answers the rows whose key is taken, while there are such. Each of them would have the whole batch refused, read back
// and sent again; where keys are always fresh, looking would cost as much for nothing.
func (s *Saver) answerTaken(items []*saving) (free []*saving) {
	met := s.met.Load()
	if met == nil || time.Since(*met) > looksFirst {
		return items
	}
	_, keys := names(items)
	if len(keys) == 0 {
		return items
	}
	ctx, cancel := s.Call()
	defer cancel()
	active, err := s.Store.FindActive(ctx, nil, keys)
	if err != nil {
		s.Failed("looking for taken keys", err)
		return items // the unique index has the last word in any case
	}
	holders := holdersOf(active)
	for _, it := range items {
		left := 0
		for d := range it.open() {
			// A row with an id of its caller's may be the holder itself, saved before.
			if holder, taken := holders[d.key()]; taken && d.drawn {
				s.duplicate(d, holder)
				continue
			}
			left++
		}
		if left == 0 {
			it.answer(nil)
			continue
		}
		free = append(free, it)
	}
	return free
}

// duplicate is the answer to a row that met the unfinished task with its key.
func (s *Saver) duplicate(d *draft, holder int64) {
	s.met.Store(new(time.Now()))
	d.met, d.err = true, &processor.DuplicateError{ID: holder}
}

// holdersOf returns the ids of rows by their keys.
func holdersOf(active []row.Row) map[row.TagKey]int64 {
	holders := make(map[row.TagKey]int64, len(active))
	for i := range active {
		holders[row.TagKey{Tag: active[i].Tag, Key: active[i].Key}.Scope()] = active[i].ID
	}
	return holders
}

// send sends the rows again, fewer each time, until every caller has an answer. It waits between two statements only when the
// first has settled nothing.
func (s *Saver) send(items []*saving) {
	for n := 0; len(items) > 0; {
		if s.Life.Err() != nil {
			answerAll(items, processor.ErrClosed)
			return
		}
		if items = s.apart(items); len(items) == 0 {
			return
		}
		now, later := splitKeys(items)
		before := openRows(items)
		again := append(s.insert(now), later...)
		if openRows(again) == before {
			lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestSavePause)))
			n++
		}
		items = again
	}
}

// longestSavePause is 320 ms, as [pause] counts: callers wait behind it, and a database that is back should serve them at once.
const longestSavePause = 5

// panicked answers the callers of a batch that a bug kept from being stored, as far as they have no answer yet.
func (s *Saver) panicked(items []*saving, value any) {
	s.Log.Error("saving panicked", "panic", value, "stack", string(debug.Stack()))
	for _, it := range items {
		it.unsure = true
		it.answer(fmt.Errorf("panic: %v", value))
	}
}

// carry marks the rows as travelling in a statement and leaves out those whose callers have left.
func carry(items []*saving) []*saving {
	var left []*saving
	for _, it := range items {
		if it.send() {
			left = append(left, it)
		}
	}
	return left
}

func answerAll(items []*saving, err error) {
	for _, it := range items {
		it.answer(err)
	}
}

func rowsOf(items []*saving) (n int) {
	for _, it := range items {
		n += it.rows()
	}
	return n
}

// openRows counts the rows that are to be inserted.
func openRows(items []*saving) (n int) {
	for _, it := range items {
		for range it.open() {
			n++
		}
	}
	return n
}

// splitKeys keeps what has a row with the key or the id of an earlier one for the next statement: it will meet that one there.
func splitKeys(items []*saving) (now, later []*saving) {
	if len(items) == 1 {
		return items, nil // within one, such rows are paired
	}
	ids, keys := map[int64]bool{}, map[row.TagKey]bool{}
	for _, it := range items {
		twice := false
		for d := range it.open() {
			twice = twice || ids[d.row.ID] || d.row.Key != "" && keys[d.key()]
		}
		if twice {
			later = append(later, it)
			continue
		}
		for d := range it.open() {
			ids[d.row.ID] = true
			if d.row.Key != "" {
				keys[d.key()] = true
			}
		}
		now = append(now, it)
	}
	return now, later
}

// insert tries to store the rows in one statement and returns what has to be sent again.
func (s *Saver) insert(items []*saving) (again []*saving) {
	ctx, cancel := s.Call()
	defer cancel()
	rows := make([]row.Row, 0, rowsOf(items))
	for _, it := range items {
		for d := range it.open() {
			rows = append(rows, d.row)
		}
	}
	err := s.Store.Insert(ctx, nil, rows)
	if items[0].alone && row.ClassOf(err) != row.ClassLocked {
		s.held.free(items[0])
	}
	s.Ended(err)
	if err == nil {
		s.stored(items)
		return nil
	}
	class := row.ClassOf(err)
	if class != row.ClassDuplicate {
		s.Failed("saving", err)
	}
	switch class {
	case row.ClassDuplicate:
		return s.readBack(items, err)
	case row.ClassNotApplied:
		return stillWanted(items)
	case row.ClassLocked:
		return s.alone(items)
	case row.ClassCaller:
		return s.halves(items, err)
	case row.ClassOperator:
		answerAll(items, err)
		return nil
	default:
		// The statement may still be applied later; inserting again with the same ids finds out.
		for _, it := range items {
			it.unsure = true
			it.unknowns++
		}
		if items[0].unknowns >= maxUnknowns {
			return s.suspect(items)
		}
		return items
	}
}

// stored answers for rows that are in the table now, all of them, and arms those that were not met there.
func (s *Saver) stored(items []*saving) {
	rows := make([]row.Due, 0, rowsOf(items))
	for _, it := range items {
		for i := range it.drafts {
			if d := &it.drafts[i]; d.err == nil && d.twin == nil && !d.met {
				rows = append(rows, d.row.Sighting())
			}
		}
	}
	s.Committed(rows...)
	answerAll(items, nil)
}

// stillWanted drops rows that nobody waits for and that are surely not stored.
func stillWanted(items []*saving) []*saving {
	var left []*saving
	for _, it := range items {
		if it.unsure || !it.isAbandoned() {
			left = append(left, it)
		}
	}
	return left
}
