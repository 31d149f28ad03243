// Package save brings new tasks into the table: from a caller's arguments to committed rows.
//
// Saves that arrive while a statement is in flight travel together in the next one (group commit). A batch that the
// database refuses is read back and divided until each caller has an answer of its own; a save of unknown outcome is sent
// again under its id, which is inserted once at most.
package save

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Saver stores new tasks. Saves that arrive while a statement is in flight travel together in the next one, but each caller is
// answered for himself: a duplicate, a refused row or a context that ends changes the answer of that caller alone.
type Saver struct {
	*lifecycle.Lifecycle
	Config
	plain *batch.Coalescer[*saving] // rows that nothing can refuse and no lock can delay
	keyed *batch.Coalescer[*saving] // rows that can meet another row: a unique key, a caller's id
	bulk  *batch.Coalescer[*saving] // plain rows that came many at a time: several connections, so that single saves do not wait

	held    heldKeys
	patient chan struct{} // one for each saving that is sent again by itself

	met atomic.Pointer[time.Time] // when a save last met a key that is taken
}

// Store is what a save needs of the store.
type Store interface {
	Now(ctx context.Context) (row.Reading, error)
	InTransaction(ctx context.Context, tx processor.Tx) (bool, error)
	Insert(ctx context.Context, tx processor.Tx, rows []row.Row) error
	Get(ctx context.Context, tx processor.Tx, ids []int64) (rows []row.Row, broken []row.Broken, err error)
	FindActive(ctx context.Context, tx processor.Tx, keys []row.TagKey) ([]row.Row, error)
}

// Config is what a Saver works with. Every field is set.
type Config struct {
	Store    Store
	Clock    *clock.Clock
	IDs      interface{ Next() int64 }
	Registry *processor.Registry

	TTR         time.Duration // of a task that names none, and whose tag names none
	MaxAttempts int           // likewise

	Committed func(rows ...row.Due) // is told of rows that are in the table, pending
	InTx      func(rows ...row.Due) // is told of rows that are there when the caller's transaction commits
	Ended     func(err error)       // is told how each statement ended
}

// The bounds of one INSERT and of what may wait for it. A statement stays far below the smallest packet limit in use (16 MiB).
const (
	saveRows  = 500
	saveBytes = 4 << 20
	saveQueue = 64 << 20
)

// New returns a saver. It stops when [Saver.Close] is called, or the life ends.
func New(life *lifecycle.Lifecycle, c Config) *Saver {
	s := &Saver{Lifecycle: life, Config: c, patient: make(chan struct{}, patientSaves)}
	lane := func(flushers int) *batch.Coalescer[*saving] {
		return batch.New(batch.Config[*saving]{
			Flush: s.flush, Panicked: s.panicked, Flushers: flushers,
			MaxItems: saveRows, MaxBytes: saveBytes, QueueBytes: saveQueue, Count: (*saving).rows, Size: (*saving).size,
		})
	}
	s.plain, s.keyed, s.bulk = lane(2), lane(1), lane(3)
	return s
}

// Close stores what is queued and stops taking more.
func (s *Saver) Close(ctx context.Context) error {
	return errors.Join(s.plain.Close(ctx), s.keyed.Close(ctx), s.bulk.Close(ctx))
}

// Save stores one task and returns its id when it is committed, and the row as it was stored, without the moments that the
// database sets. The row is nil where it may be one of an earlier save: with an error, and where the caller has chosen the id.
func (s *Saver) Save(ctx context.Context, task processor.Save) (int64, *row.Row, error) {
	d, err := s.prepare(ctx, task)
	if err != nil {
		return 0, nil, stillUnknown(task.ID, err)
	}
	it := newSaving([]draft{d})
	left := s.add(s.plain, it)
	if left == nil {
		left = it.wait(ctx)
	}
	id, err := s.result(it, &it.drafts[0], left)
	if err != nil || !d.drawn {
		return id, nil, err // a row of another save may be the one that is stored
	}
	stored := &it.drafts[0].row
	stored.Created, stored.Updated = 0, 0 // the database has its own word on these
	return id, stored, nil
}

var errManySaves = fmt.Errorf("%w: too many saves are waiting for the database", processor.ErrOverloaded)

// add queues the saving: in the lane, or where a row of it can meet another row, in that of such rows.
func (s *Saver) add(lane *batch.Coalescer[*saving], it *saving) error {
	if it.canMeet() {
		lane = s.keyed
	}
	err := lane.Add(it)
	if err == nil {
		return nil
	}
	it.leave()
	switch {
	case errors.Is(err, batch.ErrFull):
		return errManySaves
	case errors.Is(err, batch.ErrClosed):
		return processor.ErrClosed
	default:
		return err
	}
}

// result is what the caller sees of a row: the id of a new task, or of the one that was met.
func (s *Saver) result(it *saving, d *draft, left error) (int64, error) {
	err := it.outcome(d, left)
	if !d.drawn {
		err = stillUnknown(d.row.ID, err)
	}
	s.Metrics.Saved(saveResult(err), 1)
	if err == nil {
		return d.row.ID, nil
	}
	return existing(err), err
}

// stillUnknown is the answer to a save under an id of its caller's, 0 for none. It may repeat one of unknown outcome, which may
// be stored or be stored yet: as long as nothing is known of the row, that is what the caller has to hear, lest he take this one's
// error for an answer to both.
func stillUnknown(id int64, err error) error {
	about := []error{
		processor.ErrDuplicate, processor.ErrConflict, processor.ErrChunkRefused, processor.ErrDelayTooLong, processor.ErrOutcomeUnknown,
	}
	switch {
	case id == 0, err == nil, row.ClassOf(err) == row.ClassCaller:
		return err
	case slices.ContainsFunc(about, func(known error) bool { return errors.Is(err, known) }):
		return err
	default:
		return &processor.OutcomeUnknownError{ID: id, Err: err}
	}
}

// existing is the id of the task that a duplicate key met, 0 for any other error.
func existing(err error) int64 {
	if dup, ok := errors.AsType[*processor.DuplicateError](err); ok {
		return dup.ID
	}
	return 0
}

func saveResult(err error) string {
	switch {
	case err == nil:
		return metrics.SaveStored
	case errors.Is(err, processor.ErrDuplicate):
		return metrics.SaveDuplicate
	case errors.Is(err, processor.ErrOutcomeUnknown):
		return metrics.SaveUnknown
	case errors.Is(err, processor.ErrConflict):
		return metrics.SaveConflict
	case errors.Is(err, processor.ErrOverloaded), errors.Is(err, processor.ErrChunkRefused), row.ClassOf(err) == row.ClassCaller:
		return metrics.SaveRefused
	default:
		return metrics.SaveFailed
	}
}

// prepare makes the row. The promise is counted from a moment that the database's clock has not passed yet, so it is never
// shorter than the delay asked for.
func (s *Saver) prepare(ctx context.Context, task processor.Save) (draft, error) {
	if err := context.Cause(ctx); err != nil {
		return draft{}, err
	}
	now, err := s.AtMost(ctx)
	if err != nil {
		return draft{}, err
	}
	r := row.Row{
		ID: task.ID, Tag: task.Tag, Key: row.ScopedKey(task.Headers[processor.AppHeader], task.Key), Body: task.Body,
		Priority: task.Priority, MaxLate: task.MaxLate, LatePolicy: row.LatePolicy(task.LatePolicy),
		TTR: task.TTR, MaxAttempts: task.MaxAttempts, Headers: encodeHeaders(task.Headers), Created: now, Updated: now,
	}
	if task.At.IsZero() {
		r.Delay = CeilMillis(task.Delay)
		r.Expected = now.Add(r.Delay)
	} else {
		r.Expected = max(row.At(task.At), now)
		r.Delay = CeilMillis(r.Expected.Sub(now))
	}
	if r.Expected >= row.MaxTime {
		return draft{}, processor.ErrDelayTooLong
	}
	r.Due = r.Expected
	s.defaults(&r, task.Unlimited)
	if task.ID == 0 {
		r.ID = s.IDs.Next()
	}
	return draft{row: r, at: row.At(task.At), drawn: task.ID == 0}, nil
}

// defaults fills in what the task left to the tag, and the tag to the engine.
func (s *Saver) defaults(r *row.Row, unlimited bool) {
	reg, _ := s.Registry.Lookup(r.Tag)
	if r.TTR == 0 {
		r.TTR = cmp.Or(reg.TTR, s.TTR)
	}
	if r.MaxAttempts == 0 && !unlimited {
		r.MaxAttempts = cmp.Or(reg.MaxAttempts, s.MaxAttempts)
	}
}

// AtMost waits for an anchor of the clock if there is none.
func (s *Saver) AtMost(ctx context.Context) (row.Time, error) {
	for {
		if now, ok := s.Clock.AtMost(); ok {
			return now, nil
		}
		select {
		case <-s.Clock.Anchored():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-s.Life.Done():
			return 0, processor.ErrClosed
		}
	}
}

// CeilMillis rounds a delay up to whole milliseconds, the unit it is stored in. The longest delay there is (292 years, which
// stands for anything longer) is rounded down.
func CeilMillis(d time.Duration) time.Duration {
	rest := d % time.Millisecond
	switch {
	case rest <= 0:
		return d
	case d > math.MaxInt64-time.Millisecond:
		return d - rest
	default:
		return d - rest + time.Millisecond
	}
}

// isIn reports whether the row that is stored under the draft's id is its own. Under a number that was drawn here a plain INSERT may have
// put the same task, and then the row is a stranger's. One of ours carries the very promise that was drawn up with the number, and keeps
// it when its statement is sent again, by us or by something between us and the database. Only where a statement of ours was of unknown
// outcome may somebody have moved that promise since, which its version tells.
func (d *draft) isIn(stored *row.Row, unsure bool) bool {
	switch {
	case !d.isStoredAs(stored):
		return false
	case !d.drawn, unsure && stored.Version > 0:
		return true
	default:
		return stored.Expected == d.row.Expected && stored.Delay == d.row.Delay
	}
}

// isStoredAs reports whether a stored row is what the draft wants to store. A repeated save counts its delay from another moment, so
// either the delay or the promise has to agree. One that asks for a moment promises the present when that has passed meanwhile: the row
// of the first save has the moment itself, or had it behind it already.
func (d *draft) isStoredAs(stored *row.Row) bool {
	wanted := &d.row
	if stored.Tag != wanted.Tag || stored.Key != wanted.Key || string(stored.Body) != string(wanted.Body) {
		return false
	}
	return stored.Delay == wanted.Delay || stored.Expected == wanted.Expected ||
		!d.at.IsZero() && (stored.Expected == d.at || stored.Delay == 0 && stored.Expected > d.at)
}

// encodeHeaders renders headers for the column; none become NULL.
func encodeHeaders(headers map[string]string) []byte {
	if len(headers) == 0 {
		return nil
	}
	encoded, err := json.Marshal(headers)
	if err != nil {
		return nil // a map of strings always marshals
	}
	return encoded
}
