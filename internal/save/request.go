package save

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// saving is what one caller wants stored: a row, or a chunk of rows that are stored together or not at all. It travels in one
// statement as a whole.
type saving struct {
	drafts []draft
	first  int  // place of its first row in a bulk save
	alone  bool // it has met a lock and is sent by itself, beside its lane
	unsure bool // a statement that carried it ended with an unknown outcome
	done   chan struct{}

	locked   bool // it met a lock when it was sent by itself
	unknowns int  // how often its outcome was unknown
	refusals int  // how often it was refused and nothing was found in its way

	mu    sync.Mutex
	state savingState
}

// draft is a row on its way into the table.
type draft struct {
	row   row.Row  // its id is written under the saving's lock: a caller who leaves reads it
	at    row.Time // asked for, 0 where a delay was
	drawn bool     // the id was drawn here: when a stranger has it, another one is drawn
	twin  *draft   // an earlier one of the chunk with the same key or id, whose answer is its own
	met   bool     // it is not sent any more: it was there already, or err is a duplicate
	err   error    // the answer
}

// savingState says how far it has come. Only the caller withdraws or abandons, only the flusher sends and answers.
type savingState int

const (
	waiting   savingState = iota
	sent                  // in a statement: its outcome decides
	answered              // what became of each row stands in its draft
	withdrawn             // the caller left before a statement carried it: nothing was stored
	abandoned             // the caller left while a statement was in flight
)

func newSaving(drafts []draft) *saving { return &saving{drafts: drafts, done: make(chan struct{})} }

func (s *saving) rows() int { return len(s.drafts) }

func (s *saving) size() (bytes int) {
	for i := range s.drafts {
		bytes += s.drafts[i].size()
	}
	return bytes
}

func (d *draft) size() int {
	return 256 + len(d.row.Tag) + len(d.row.Key) + len(d.row.Body) + len(d.row.Headers)
}

// key is what the row's key must be unique in.
func (d *draft) key() row.TagKey { return row.TagKey{Tag: d.row.Tag, Key: d.row.Key}.Scope() }

// canMeet reports whether another row can be in its way.
func (d *draft) canMeet() bool { return d.row.Key != "" || !d.drawn }

func (s *saving) canMeet() bool {
	for i := range s.drafts {
		if s.drafts[i].canMeet() {
			return true
		}
	}
	return false
}

// open yields the rows that are to be inserted.
func (s *saving) open() iter.Seq[*draft] {
	return func(yield func(*draft) bool) {
		for i := range s.drafts {
			if d := &s.drafts[i]; !d.met && d.twin == nil && !yield(d) {
				return
			}
		}
	}
}

// send reports whether its caller still waits for it to be sent.
func (s *saving) send() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != waiting {
		return false
	}
	s.state = sent
	return true
}

// wait returns when there is an answer, or the cause of ctx when that ended first.
func (s *saving) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		s.leave()
		return context.Cause(ctx)
	}
}

// leave ends the caller's wait, unless there is an answer.
func (s *saving) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case waiting:
		s.state = withdrawn
	case sent:
		s.state = abandoned
	}
}

func (s *saving) isAbandoned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == abandoned
}

// outcome is what became of a row, once the caller has waited; left says why he did not wait to the end.
func (s *saving) outcome(d *draft, left error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case answered:
		return d.err
	case abandoned:
		return &processor.OutcomeUnknownError{ID: d.row.ID, Err: left}
	default:
		return left
	}
}

// redraw gives the row another id, unless its caller has already left with the one it had.
func (s *saving) redraw(d *draft, id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == abandoned {
		return false
	}
	d.row.ID = id
	return true
}

// answer says what became of the rows that were sent: nil that they are stored.
func (s *saving) answer(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == answered || s.state == abandoned {
		return
	}
	for i := range s.drafts {
		d := &s.drafts[i]
		switch {
		case d.met || d.err != nil:
		case d.twin != nil && (d.twin.err == nil || errors.Is(d.twin.err, processor.ErrDuplicate)):
			d.err = d.asTwin()
		default:
			d.err = s.known(d, err)
		}
	}
	s.state = answered
	close(s.done)
}

// known is what can be said of a row that was not stored as far as its last statement goes.
func (s *saving) known(d *draft, err error) error {
	cause := err
	if chunk, ok := errors.AsType[*processor.ChunkError](err); ok {
		cause = chunk.Err
	}
	if err == nil || !s.unsure || errors.Is(cause, processor.ErrConflict) {
		return err
	}
	return &processor.OutcomeUnknownError{ID: d.row.ID, Err: err}
}

// asTwin is the answer to a row whose twin is stored, or has met the task that carries the key.
func (d *draft) asTwin() error {
	if d.twin.err != nil || d.row.ID == d.twin.row.ID {
		return d.twin.err
	}
	return &processor.DuplicateError{ID: d.twin.row.ID}
}

// refuse answers with the error that one of the rows has; those that are not there yet are not stored for its sake.
func (s *saving) refuse(place int) {
	s.answer(&processor.ChunkError{Index: s.first + place, Err: s.drafts[place].err})
}
