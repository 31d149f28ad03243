package engine

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// flush stores a batch.
func (s *saver) flush(items []*saving) {
	s.metrics.Batch("save", len(items))
	s.send(s.answerTaken(carry(items)))
}

// looksFirst is how long after a duplicate the keys of a batch are looked up before it is sent.
const looksFirst = time.Second

// answerTaken answers the saves whose key is taken, while there are such. Each of them would have the whole batch refused, read back
// and sent again; where keys are always fresh, looking would cost as much for nothing.
func (s *saver) answerTaken(items []*saving) (free []*saving) {
	_, keys := names(items)
	if met := s.met.Load(); len(keys) == 0 || met == nil || time.Since(*met) > looksFirst {
		return items
	}
	ctx, cancel := s.call()
	defer cancel()
	active, err := s.store.FindActive(ctx, nil, keys)
	if err != nil {
		s.failed("looking for taken keys", err)
		return items // the unique index has the last word in any case
	}
	holders := holdersOf(active)
	for _, it := range items {
		// A row with an id of its caller's may be the holder itself, saved before.
		if holder, taken := holders[it.key()]; taken && it.drawn {
			s.duplicate(it, holder)
			continue
		}
		free = append(free, it)
	}
	return free
}

// duplicate answers a save that met the unfinished task with its key.
func (s *saver) duplicate(it *saving, holder int64) {
	s.met.Store(new(time.Now()))
	it.answer(&processor.DuplicateError{ID: holder})
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
// first has brought nobody an answer.
func (s *saver) send(items []*saving) {
	for n := 0; len(items) > 0; {
		if s.life.Err() != nil {
			answerAll(items, processor.ErrClosed)
			return
		}
		now, later := splitKeys(items)
		again := append(s.insert(now), later...)
		if len(again) == len(items) {
			sleep(s.life, pause(min(n, longestSavePause)))
			n++
		}
		items = again
	}
}

// longestSavePause is 320 ms, as [pause] counts: callers wait behind it, and a database that is back should serve them at once.
const longestSavePause = 5

// panicked answers the callers of a batch that a bug kept from being stored, as far as they have no answer yet.
func (s *saver) panicked(items []*saving, value any) {
	s.log.Error("saving panicked", "panic", value, "stack", string(debug.Stack()))
	for _, it := range items {
		it.unsure = true
		select {
		case it.done <- &processor.OutcomeUnknownError{ID: it.row.ID, Err: fmt.Errorf("panic: %v", value)}:
		default:
		}
	}
}

// carry marks the rows as travelling in a statement and leaves out those whose callers have left.
func carry(items []*saving) []*saving {
	var left []*saving
	for _, it := range items {
		if it.state.CompareAndSwap(waiting, sent) {
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

// splitKeys keeps a second row with the key or the id of a first one for the next statement: it will meet the first one there.
func splitKeys(items []*saving) (now, later []*saving) {
	ids, keys := map[int64]bool{}, map[row.TagKey]bool{}
	for _, it := range items {
		key := it.key()
		if ids[it.row.ID] || it.row.Key != "" && keys[key] {
			later = append(later, it)
			continue
		}
		ids[it.row.ID], keys[key] = true, true
		now = append(now, it)
	}
	return now, later
}

// insert tries to store the rows in one statement and returns those that have to be sent again.
func (s *saver) insert(items []*saving) (again []*saving) {
	ctx, cancel := s.call()
	defer cancel()
	rows := make([]row.Row, len(items))
	for i, it := range items {
		rows[i] = it.row
	}
	err := s.store.Insert(ctx, nil, rows)
	if err == nil {
		s.stored(items)
		return nil
	}
	class := row.ClassOf(err)
	if class != row.ClassDuplicate {
		s.failed("saving", err)
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
		}
		return items
	}
}

func (s *saver) stored(items []*saving) {
	rows := make([]row.Due, len(items))
	for i, it := range items {
		rows[i] = dueOf(&it.row)
	}
	s.arm.saved(rows)
	answerAll(items, nil)
}

// stillWanted drops rows that nobody waits for and that are surely not stored.
func stillWanted(items []*saving) []*saving {
	var left []*saving
	for _, it := range items {
		if it.unsure || it.state.Load() != abandoned {
			left = append(left, it)
		}
	}
	return left
}

// alone sends each row by itself: one of them waits for somebody else's transaction, and only that one shall. The lane goes on
// meanwhile.
func (s *saver) alone(items []*saving) (again []*saving) {
	if items[0].alone {
		return stillWanted(items)
	}
	places := make(chan struct{}, savesAlone)
	s.goFunc(func() {
		for _, it := range items {
			places <- struct{}{}
			it.alone = true
			s.goFunc(func() {
				s.send([]*saving{it})
				<-places
			})
		}
	})
	return nil
}

// maxRefusals is how often a row is sent again although something that cannot be read back is in its way.
const maxRefusals = 4

// savesAlone bounds how many rows are sent by themselves at a time, each on a connection of its own.
const savesAlone = 4

// halves finds the row that the database refuses.
func (s *saver) halves(items []*saving, err error) []*saving {
	if len(items) == 1 {
		items[0].answer(err)
		return nil
	}
	half := len(items) / 2
	return append(s.insert(items[:half]), s.insert(items[half:])...)
}

// readBack answers the rows of a refused statement from what the table holds, and returns those that nothing stands against.
// Where the database goes on refusing a row and shows nothing that is in its way, such as a task that cannot be decoded, the
// refusal is the answer.
func (s *saver) readBack(items []*saving, refusal error) (again []*saving) {
	ctx, cancel := s.call()
	defer cancel()
	ids, keys := names(items)
	rows, broken, err := s.store.Get(ctx, nil, ids)
	if err != nil {
		s.failed("reading back a refused save", err)
		return items
	}
	active, err := s.store.FindActive(ctx, nil, keys)
	if err != nil {
		s.failed("reading back a refused save", err)
		return items
	}
	byID, byKey := map[int64]*row.Row{}, holdersOf(active)
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	for _, b := range broken {
		byID[b.ID] = &row.Row{}
	}
	var stored []*saving
	for _, it := range items {
		other, taken := byID[it.row.ID]
		holder, met := byKey[it.key()]
		switch {
		case taken && sameTask(other, &it.row):
			stored = append(stored, it)
		case taken && !it.drawn:
			it.answer(processor.ErrConflict)
		case met && it.row.Key != "":
			s.duplicate(it, holder)
		case taken:
			// A plain INSERT took our next number.
			if it.redraw(s.ids.Next()) {
				again = append(again, it)
			}
		case it.refusals == maxRefusals:
			it.answer(refusal)
		default:
			again = append(again, it)
		}
	}
	s.stored(stored)
	switch {
	case len(again) < len(items):
		return again
	case len(items) > 1:
		return s.alone(items)
	default:
		items[0].refusals++
	}
	return again
}

func names(items []*saving) (ids []int64, keys []row.TagKey) {
	for _, it := range items {
		ids = append(ids, it.row.ID)
		if it.row.Key != "" {
			keys = append(keys, it.key())
		}
	}
	return ids, keys
}
