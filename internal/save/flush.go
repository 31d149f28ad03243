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
func (s *Saver) flush(requests []*request) {
	s.Metrics.Batch("save", countRows(requests))
	s.store(s.answerDuplicates(markSent(requests)))
}

// markSent marks the requests as sent and leaves out those whose callers have left.
func markSent(requests []*request) (rest []*request) {
	for _, r := range requests {
		if r.send() {
			rest = append(rest, r)
		}
	}
	return rest
}

// lookFirst is how long after a duplicate the keys of a batch are looked up before it is sent.
const lookFirst = time.Second

// answerDuplicates answers rows whose key is taken, while saves meet such keys. Each of them would have the whole batch
// refused, read back and sent again. Where keys are always fresh, looking first would cost as much for nothing.
func (s *Saver) answerDuplicates(requests []*request) (rest []*request) {
	collided := s.collided.Load()
	if collided == nil || time.Since(*collided) > lookFirst {
		return requests
	}
	_, keys := idsAndKeys(requests)
	if len(keys) == 0 {
		return requests
	}
	ctx, cancel := s.Call()
	defer cancel()
	active, err := s.Store.FindActive(ctx, nil, keys)
	if err != nil {
		s.Failed("looking for taken keys", err)
		return requests // the unique index decides in any case
	}
	holders := idsByKey(active)
	for _, r := range requests {
		left := 0
		for n := range r.remaining() {
			// A row with an id of the caller's may be the one that has the key, saved before.
			if holder, taken := holders[n.key()]; taken && n.drawn {
				s.duplicate(n, holder)
				continue
			}
			left++
		}
		if left == 0 {
			r.answer(nil)
			continue
		}
		rest = append(rest, r)
	}
	return rest
}

// duplicate is the answer to a row whose key an unfinished task has.
func (s *Saver) duplicate(n *newRow, holder int64) {
	s.collided.Store(new(time.Now()))
	n.met, n.err = true, &processor.DuplicateError{ID: holder}
}

// idsByKey returns the ids of rows by their keys.
func idsByKey(rows []row.Row) map[row.TagKey]int64 {
	ids := make(map[row.TagKey]int64, len(rows))
	for i := range rows {
		ids[row.TagKey{Tag: rows[i].Tag, Key: rows[i].Key}.Scope()] = rows[i].ID
	}
	return ids
}

// store sends the requests until every caller has an answer. It waits between two statements only when the first one
// has settled nothing.
func (s *Saver) store(requests []*request) {
	for n := 0; len(requests) > 0; {
		if s.Life.Err() != nil {
			answerAll(requests, processor.ErrClosed)
			return
		}
		if requests = s.holdBackLocked(requests); len(requests) == 0 {
			return
		}
		now, later := splitDuplicates(requests)
		before := countRemaining(requests)
		again := append(s.insert(now), later...)
		if countRemaining(again) == before {
			lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestBackoff)))
			n++
		}
		requests = again
	}
}

// longestBackoff is 320 ms, as [lifecycle.Backoff] counts. Callers wait for it, and a database that is back should
// serve them at once.
const longestBackoff = 5

// panicked answers the callers of a batch that a bug kept from being stored, as far as they have no answer yet.
func (s *Saver) panicked(requests []*request, value any) {
	s.Log.Error("saving panicked", "panic", value, "stack", string(debug.Stack()))
	for _, r := range requests {
		r.unsure = true
		r.answer(fmt.Errorf("panic: %v", value))
	}
}

func answerAll(requests []*request, err error) {
	for _, r := range requests {
		r.answer(err)
	}
}

func countRows(requests []*request) (n int) {
	for _, r := range requests {
		n += r.count()
	}
	return n
}

// countRemaining counts the rows that are still to be inserted.
func countRemaining(requests []*request) (n int) {
	for _, r := range requests {
		for range r.remaining() {
			n++
		}
	}
	return n
}

// splitDuplicates keeps a request that has a row with the key or the id of an earlier one for the next statement, where
// it meets that one in the table.
func splitDuplicates(requests []*request) (now, later []*request) {
	if len(requests) == 1 {
		return requests, nil // duplicates within one request are known: see findDuplicates
	}
	ids, keys := map[int64]bool{}, map[row.TagKey]bool{}
	for _, r := range requests {
		twice := false
		for n := range r.remaining() {
			twice = twice || ids[n.row.ID] || n.row.Key != "" && keys[n.key()]
		}
		if twice {
			later = append(later, r)
			continue
		}
		for n := range r.remaining() {
			ids[n.row.ID] = true
			if n.row.Key != "" {
				keys[n.key()] = true
			}
		}
		now = append(now, r)
	}
	return now, later
}

// insert tries to store the requests in one statement and returns those that have to be sent again.
func (s *Saver) insert(requests []*request) (again []*request) {
	ctx, cancel := s.Call()
	defer cancel()
	rows := make([]row.Row, 0, countRows(requests))
	for _, r := range requests {
		for n := range r.remaining() {
			rows = append(rows, n.row)
		}
	}
	err := s.Store.Insert(ctx, nil, rows)
	if requests[0].alone && row.ClassOf(err) != row.ClassLocked {
		s.locked.remove(requests[0])
	}
	s.Ended(err)
	if err == nil {
		s.stored(requests)
		return nil
	}
	class := row.ClassOf(err)
	if class != row.ClassDuplicate {
		s.Failed("saving", err)
	}
	switch class {
	case row.ClassDuplicate:
		return s.readBack(requests, err)
	case row.ClassNotApplied:
		return stillWanted(requests)
	case row.ClassLocked:
		return s.sendAlone(requests)
	case row.ClassCaller:
		return s.halve(requests, err)
	case row.ClassOperator:
		answerAll(requests, err)
		return nil
	default:
		// The statement may still be applied later; inserting again with the same ids finds out.
		for _, r := range requests {
			r.unsure = true
			r.unknowns++
		}
		if requests[0].unknowns >= maxUnknowns {
			return s.isolate(requests)
		}
		return requests
	}
}

// stored answers for requests all of whose rows are in the table, and reports those rows that were stored now.
func (s *Saver) stored(requests []*request) {
	rows := make([]row.Due, 0, countRows(requests))
	for _, r := range requests {
		for i := range r.rows {
			if n := &r.rows[i]; n.err == nil && n.duplicateOf == nil && !n.met {
				rows = append(rows, n.row.Sighting())
			}
		}
	}
	s.Committed(rows...)
	answerAll(requests, nil)
}

// stillWanted drops requests that are surely not stored and whose callers have left.
func stillWanted(requests []*request) (rest []*request) {
	for _, r := range requests {
		if r.unsure || !r.isAbandoned() {
			rest = append(rest, r)
		}
	}
	return rest
}
