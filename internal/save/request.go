package save

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

// request is what one caller wants stored: a row, or a chunk of rows that are stored together or not at all. One
// statement carries all of it.
type request struct {
	rows   []newRow
	first  int   // place of its first row in a bulk save
	alone  bool  // it is sent by itself, outside of its lane
	unsure bool  // a statement that carried it ended with an unknown outcome
	failed error // the last statement did, and has changed nothing
	done   chan struct{}

	unknowns int // how often its outcome was unknown
	refusals int // how often it was refused although nothing was found in its way

	mu    sync.Mutex // guards state, failed, the row's ids and answers; no other lock is taken under it
	state requestState
}

// requestState says how far a request has come. Only its caller withdraws or abandons it, and only the flusher sends
// and answers it.
type requestState int

const (
	waiting   requestState = iota // nothing that was sent for it can be applied
	sent                          // a statement carries it, and the outcome of that decides
	answered                      // each row has its answer
	withdrawn                     // the caller left while it waited: nothing was stored
	abandoned                     // the caller left while a statement was in flight
)

// newRow is a row on its way into the table.
type newRow struct {
	row         row.Row  // its id is written under the request's lock: a caller that leaves reads it
	at          row.Time // the due time that was asked for, 0 where a delay was
	drawn       bool     // the id was drawn here, so another one may be drawn when it is taken
	reschedules bool     // a duplicate is no answer: the caller reschedules the task that carries the key
	duplicateOf *newRow  // an earlier one of the request with the same key or id, whose answer counts for both
	met         bool     // it needs no statement: it is in the table already, or err is a duplicate
	err         error    // the answer
}

func newRequest(rows []newRow) *request { return &request{rows: rows, done: make(chan struct{})} }

func (r *request) count() int { return len(r.rows) }

func (r *request) size() (bytes int) {
	for i := range r.rows {
		bytes += r.rows[i].size()
	}
	return bytes
}

func (n *newRow) size() int {
	return 256 + len(n.row.Tag) + len(n.row.Key) + len(n.row.Body) + len(n.row.Headers)
}

// key is what the row's key must be unique in.
func (n *newRow) key() row.TagKey { return row.TagKey{Tag: n.row.Tag, Key: n.row.Key}.Scope() }

// canCollide reports whether another row can have its key or its id.
func (n *newRow) canCollide() bool { return n.row.Key != "" || !n.drawn }

func (r *request) canCollide() bool {
	for i := range r.rows {
		if r.rows[i].canCollide() {
			return true
		}
	}
	return false
}

// groups returns what the request may wait for when another transaction has locked keys, or ranges: its keys, and then
// its tags.
func (r *request) groups() (groups []string) {
	for n := range r.remaining() {
		if n.row.Key != "" {
			groups = append(groups, table.KeyGroup(n.key()))
		}
	}
	for n := range r.remaining() {
		if !slices.Contains(groups, n.row.Tag) {
			groups = append(groups, n.row.Tag)
		}
	}
	return groups
}

// remaining yields the rows that are still to be inserted.
func (r *request) remaining() iter.Seq[*newRow] {
	return func(yield func(*newRow) bool) {
		for i := range r.rows {
			if n := &r.rows[i]; !n.met && n.duplicateOf == nil && !yield(n) {
				return
			}
		}
	}
}

// send reports whether the request is still to be sent. From then on the caller does not know its outcome until it is
// answered.
func (r *request) send() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == waiting {
		r.state = sent
	}
	return r.state != withdrawn
}

// hold takes back [request.send]: no statement that carries the request was sent, or the last one has changed nothing
// because of err. A caller that leaves now knows that nothing is stored.
func (r *request) hold(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = err
	}
	if r.state == sent && !r.unsure {
		r.state = waiting
	}
}

// wait returns when there is an answer, or the cause of ctx when that ended first.
func (r *request) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		r.leave()
		return context.Cause(ctx)
	}
}

// leave ends the caller's wait, unless there is an answer.
func (r *request) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case waiting:
		r.state = withdrawn
	case sent:
		r.state = abandoned
	}
}

// isLeft reports whether the caller has left without an answer.
func (r *request) isLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == withdrawn || r.state == abandoned
}

// outcome is the answer to a row, once the caller has waited. left says why it did not wait to the end.
func (r *request) outcome(n *newRow, left error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case answered:
		return n.err
	case abandoned:
		return &delaytask.OutcomeUnknownError{ID: n.row.ID, Err: left}
	default:
		return r.notStored(left)
	}
}

// blame tells a request that never had a turn why the one before it has none.
func (r *request) blame(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// notStored says why nothing was stored for a caller that has left. The lock is held.
func (r *request) notStored(left error) error {
	switch {
	case errors.Is(left, delaytask.ErrOverloaded), errors.Is(left, delaytask.ErrClosed):
		return left
	case r.failed != nil:
		return fmt.Errorf("%w: %w: %w", delaytask.ErrNotStored, left, r.failed)
	default:
		return fmt.Errorf("%w: %w", delaytask.ErrNotStored, left)
	}
}

// redraw gives the row another id, unless its caller has already left with the one it had.
func (r *request) redraw(n *newRow, id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == withdrawn || r.state == abandoned {
		return false
	}
	n.row.ID = id
	return true
}

// answer gives this answer to the rows without one: nil means that they are stored.
func (r *request) answer(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == answered || r.state == withdrawn || r.state == abandoned {
		return
	}
	for i := range r.rows {
		n := &r.rows[i]
		switch first := n.duplicateOf; {
		case n.met || n.err != nil:
		case first != nil && (first.err == nil || errors.Is(first.err, delaytask.ErrDuplicate)):
			n.err = n.asDuplicate()
		default:
			n.err = r.certain(n, err)
		}
	}
	r.doubtDuplicates()
	r.state = answered
	close(r.done)
}

// doubtDuplicates answers "unknown" where a statement of unknown outcome may still be applied: as soon as the key is
// free again. It is refused for ever once one of its rows is in the table. The caller locks.
func (r *request) doubtDuplicates() {
	if !r.unsure || slices.ContainsFunc(r.rows, func(n newRow) bool { return n.err == nil }) {
		return
	}
	for i := range r.rows {
		n := &r.rows[i]
		if taken, ok := errors.AsType[*delaytask.DuplicateError](n.err); ok {
			// Not wrapped: no caller may take it for a duplicate.
			n.err = &delaytask.OutcomeUnknownError{ID: n.row.ID, Err: fmt.Errorf("task %d has the key now, and a "+
				"statement of this save may be applied when that one has finished: save again with the id", taken.ID)}
		}
	}
}

// certain returns what the error of the last statement says about a row that an earlier one may have stored.
func (r *request) certain(n *newRow, err error) error {
	cause := err
	if chunk, ok := errors.AsType[*delaytask.ChunkError](err); ok {
		cause = chunk.Err
	}
	if err == nil || !r.unsure || errors.Is(cause, delaytask.ErrConflict) {
		return err
	}
	return &delaytask.OutcomeUnknownError{ID: n.row.ID, Err: err}
}

// asDuplicate is the answer to a row whose first one is stored, or has met the task that carries the key.
func (n *newRow) asDuplicate() error {
	if first := n.duplicateOf; first.err != nil || n.row.ID == first.row.ID {
		return first.err
	}
	return &delaytask.DuplicateError{ID: n.duplicateOf.row.ID}
}

// refuse answers with the error of one of the rows: because of it, the others that are not in the table are not stored.
func (r *request) refuse(place int) {
	r.answer(&delaytask.ChunkError{Index: r.first + place, Err: r.rows[place].err})
}
