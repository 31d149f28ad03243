package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// saving is one row on its way into the table.
type saving struct {
	row    row.Row
	id     atomic.Int64 // row.ID for a caller who does not wait for the answer
	drawn  bool         // the id was drawn here: when a stranger has it, another one is drawn
	alone  bool         // it has met a lock and is sent by itself, beside its lane
	unsure bool         // a statement that carried the row ended with an unknown outcome
	state  atomic.Int32
	done   chan error

	refusals int // how often the row was refused and nothing was found in its way
}

// The states of a saving. Only the caller withdraws or abandons, only the flusher sends.
const (
	waiting   int32 = iota
	sent            // in a statement: its outcome decides
	withdrawn       // the caller left before a statement carried it: nothing was stored
	abandoned       // the caller left while a statement was in flight
)

func newSaving(r row.Row, drawn bool) *saving {
	s := &saving{row: r, drawn: drawn, done: make(chan error, 1)}
	s.id.Store(r.ID)
	return s
}

func (s *saving) size() int {
	return 256 + len(s.row.Tag) + len(s.row.Key) + len(s.row.Body) + len(s.row.Headers)
}

// key is what the row's key must be unique in.
func (s *saving) key() row.TagKey { return row.TagKey{Tag: s.row.Tag, Key: s.row.Key}.Scope() }

// wait returns what became of the row, or what is known when ctx ends first.
func (s *saving) wait(ctx context.Context) error {
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
	}
	if s.state.CompareAndSwap(waiting, withdrawn) {
		return context.Cause(ctx)
	}
	s.state.CompareAndSwap(sent, abandoned)
	select {
	case err := <-s.done:
		return err
	default:
		return &processor.OutcomeUnknownError{ID: s.id.Load(), Err: context.Cause(ctx)}
	}
}

// redraw gives the row another id, unless its caller has already left with the one it had.
func (s *saving) redraw(id int64) bool {
	s.id.Store(id)
	s.row.ID = id
	return s.state.Load() != abandoned
}

func (s *saving) answer(err error) {
	if err != nil && s.unsure {
		if _, met := errors.AsType[*processor.DuplicateError](err); !met && !errors.Is(err, processor.ErrConflict) {
			err = &processor.OutcomeUnknownError{ID: s.row.ID, Err: err}
		}
	}
	s.done <- err
}
