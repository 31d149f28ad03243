package save

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

func (s *Saver) flush(requests []*request) {
	s.Metrics.Batch("save", countRows(requests))
	s.store(s.answerDuplicates(requests))
}

// lookFirst is how long after a duplicate the keys of a batch are looked up before it is sent.
const lookFirst = time.Second

// answerDuplicates answers rows whose key is taken, while saves meet such keys. Each of them would have the whole batch
// refused, read back and sent again. If keys are always fresh, looking first costs as much for nothing.
func (s *Saver) answerDuplicates(requests []*request) (rest []*request) {
	collided := s.collided.Load()
	if collided == nil || time.Since(*collided) > lookFirst {
		return requests
	}
	requests = stillWanted(requests)
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
	n.met, n.err = true, &delaytask.DuplicateError{ID: holder}
}

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
			answerAll(requests, delaytask.ErrClosed)
			return
		}
		before := countRemaining(requests)
		again := s.apart.Send(requests)
		if countRemaining(again) == before {
			lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestBackoff)))
			n++
		}
		requests = again
	}
}

// write sends the requests once and returns those that have to be sent again. locked takes them when the statement has
// met a lock.
func (s *Saver) write(
	ctx context.Context, requests []*request, locked func([]*request) (again []*request),
) (again []*request) {
	if s.Life.Err() != nil {
		answerAll(requests, delaytask.ErrClosed)
		return nil
	}
	now, later := splitDuplicates(stillWanted(requests))
	if len(now) == 0 {
		return later
	}
	return append(s.insert(ctx, now, locked), later...)
}

// longestBackoff is 320 ms, as [lifecycle.Backoff] counts. Callers wait for it, and should not wait long for a database
// that is back.
const longestBackoff = 5

// panicked answers those callers of a batch that have no answer, after a panic has ended its flush.
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

// splitDuplicates keeps a request for the next statement if one of its rows has the key or the id of an earlier row. It
// meets that row in the table then.
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

// insert is write for requests that one statement can carry.
func (s *Saver) insert(
	ctx context.Context, requests []*request, locked func([]*request) (again []*request),
) (again []*request) {
	if requests, _ = batch.Split(requests, (*request).send); len(requests) == 0 {
		return nil
	}
	ctx = store.WithDeparture(ctx, departureOf(requests))
	rows := make([]row.Row, 0, countRows(requests))
	for _, r := range requests {
		for n := range r.remaining() {
			rows = append(rows, n.row)
		}
	}
	err := s.Store.Insert(ctx, nil, rows)
	if errors.Is(err, errLeft) {
		hold(requests, nil)
		return stillWanted(requests)
	}
	s.noteEnd(err)
	if err == nil {
		s.stored(requests)
		return nil
	}
	class := row.ClassOf(err)
	switch class {
	case row.ClassUnknown, row.ClassDuplicate: // a statement that was sent twice meets its own rows
	case row.ClassNotApplied, row.ClassLocked:
		hold(requests, err)
	default:
		hold(requests, nil)
	}
	if class != row.ClassDuplicate {
		s.Failed("saving", err)
	}
	switch class {
	case row.ClassDuplicate:
		return s.readBack(requests, err)
	case row.ClassNotApplied:
		return stillWanted(requests)
	case row.ClassLocked:
		return locked(requests)
	case row.ClassCaller:
		return s.halve(ctx, requests, locked, err)
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

// errLeft keeps a batch from being sent: a caller has left while it waited for a connection.
var errLeft = errors.New("a caller has left")

// departureOf lets the callers of a batch leave without a doubt until it is sent.
func departureOf(requests []*request) store.Departure {
	return store.Departure{
		Waits: func() { hold(requests, nil) },
		Sends: func() error {
			if _, left := batch.Split(requests, (*request).send); len(left) > 0 {
				return errLeft
			}
			return nil
		},
	}
}

// hold takes back that the requests are sent.
func hold(requests []*request, err error) {
	for _, r := range requests {
		r.hold(err)
	}
}

// noteEnd notes how a statement has ended. Of errors about its rows the database is not the cause.
func (s *Saver) noteEnd(err error) {
	if failing := err != nil; failing || s.failed.Load() {
		s.failed.Store(failing)
		s.Ended(err)
	}
	switch {
	case err == nil, row.IsOneOf(err, row.ClassDuplicate, row.ClassCaller, row.ClassLocked):
		s.failing.Store(nil)
	default:
		s.failing.Store(&err)
	}
}

// stored answers for requests all of whose rows are in the table, and reports those rows that were stored now.
func (s *Saver) stored(requests []*request) {
	rows := make([]row.Due, 0, countRows(requests))
	for _, r := range requests {
		for i := range r.rows {
			if n := &r.rows[i]; n.err == nil && n.duplicateOf == nil && !n.met {
				rows = append(rows, n.row.Sighting())
				s.Stored(&n.row)
			}
		}
	}
	s.Committed(rows...)
	answerAll(requests, nil)
}

// stillWanted drops requests that are surely not stored and whose callers have left.
func stillWanted(requests []*request) (rest []*request) {
	rest, _ = batch.Split(requests, func(r *request) bool { return r.unsure || !r.isLeft() })
	return rest
}

// maxAlone bounds how many requests are sent by themselves at a time.
const maxAlone = 4

// sendAlone sends each request by itself, so that what a statement meets is about one. The lane goes on meanwhile.
func (s *Saver) sendAlone(requests []*request) (again []*request) {
	places := make(chan struct{}, maxAlone)
	requests = slices.Clone(requests)
	s.Go(func() {
		for _, r := range requests {
			places <- struct{}{}
			r.alone = true
			s.Go(func() {
				defer func() { <-places }()
				s.store([]*request{r})
			})
		}
	})
	return nil
}

// maxUnknowns is how often the outcome of a batch may be unknown before the database is asked whether that is due to
// its rows.
const maxUnknowns = 4

// isolate sends each request by itself if the database answers other statements, but not these requests. A request
// whose caller has left with an unknown outcome is not sent any more.
func (s *Saver) isolate(requests []*request) (again []*request) {
	ctx, cancel := s.Call() // the requests may have used up their time
	defer cancel()
	if _, err := s.Store.Now(ctx); err != nil {
		return requests
	}
	wanted, _ := batch.Split(requests, func(r *request) bool { return !r.isLeft() })
	if len(wanted) == 0 || requests[0].alone {
		return wanted
	}
	return s.sendAlone(wanted)
}

// wouldRefuse asks the database about some of the rows without storing any: a statement that holds one id twice cannot
// succeed, whatever else is in it.
func (s *Saver) wouldRefuse(r *request, places []int) bool {
	ctx, cancel := s.Call()
	defer cancel()
	rows := make([]row.Row, 0, len(places)+1)
	for _, i := range places {
		rows = append(rows, r.rows[i].row)
	}
	return row.ClassOf(s.Store.Insert(ctx, nil, append(rows, rows[0]))) == row.ClassCaller
}
