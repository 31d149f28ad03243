// Package save brings new tasks into the table: from a caller's arguments to committed rows.
//
// Saves that arrive while a statement is in flight travel together in the next one (group commit). A batch that the
// database refuses is read back and divided until each caller has an answer of its own. A save of unknown outcome is
// sent again under its id, which can be inserted once only.
//
//	save.go      makes rows of what callers ask for, and queues them in lanes
//	request.go   is what one caller wants stored, and its answer
//	chunk.go     cuts a bulk save into what one statement takes
//	flush.go     sends a batch until each caller has an answer
//	refused.go   finds out why a batch was refused
//	tx.go        stores a row in the caller's transaction
//
// Its scenarios are tested with the engine: internal/engine/save*_test.go.
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

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Config is what a [Saver] works with. Every field is set.
type Config struct {
	NextID   func() int64
	Registry *processor.Registry

	TTR         time.Duration // of a task without one whose tag has none
	MaxAttempts int           // likewise

	Committed func(rows ...row.Due) // called with rows that are in the table, pending
	Stored    func(r *row.Row)      // called with each row that a save of its own has stored
	InTx      func(rows ...row.Due) // called with rows that are there once the caller's transaction commits
	Ended     func(err error)       // called with each error of a statement, and with nil once one succeeds again
}

// Saver stores new tasks. Each caller is answered for itself: a duplicate, a refused row or a context that ends changes
// the answer of that caller alone.
type Saver struct {
	*table.Table
	Config

	// The lanes. Each sends its requests in statements of their own.
	plain *batch.Coalescer[*request] // rows without a key and without an id of the caller: they meet no other row
	keyed *batch.Coalescer[*request] // rows with a unique key or an id of the caller's, which other rows may have
	bulk  *batch.Coalescer[*request] // plain rows that came many at a time, so that single saves do not wait for them

	apart    *table.Apart[*request]    // what may wait for a lock of another transaction
	collided atomic.Pointer[time.Time] // when a save last met a key that is taken
	failed   atomic.Bool               // the last statement did
	failing  atomic.Pointer[error]     // why the database stores nothing now, nil while it does
}

// The bounds of one INSERT and of what may wait for it. A statement stays far below the smallest packet limit in use,
// 16 MiB.
const (
	MaxRows    = 500
	MaxBytes   = 4 << 20
	queueBytes = 64 << 20
)

// New returns a saver, which works until [Saver.Close] or the end of the life.
func New(t *table.Table, c Config) *Saver {
	s := &Saver{Table: t, Config: c}
	s.apart = table.NewApart(t, table.ApartConfig[*request]{
		Groups: (*request).groups, Write: s.write,
		LeaveOut: func(_ context.Context, all []*request) []*request { return all }, // no new row can be locked
		Size:     func(r **request) int { return (*r).size() }, MaxRows: MaxRows, MaxBytes: MaxBytes,
	})
	lane := func(flushers int) *batch.Coalescer[*request] {
		return batch.New(batch.Config[*request]{
			Flush: s.flush, Panicked: s.panicked, Flushers: flushers,
			MaxItems: MaxRows, MaxBytes: MaxBytes, QueueBytes: queueBytes,
			Count: (*request).count, Size: (*request).size,
		})
	}
	s.plain, s.keyed, s.bulk = lane(2), lane(1), lane(3)
	return s
}

// Close stores what is queued and refuses further saves with [delaytask.ErrClosed].
func (s *Saver) Close(ctx context.Context) error {
	return errors.Join(s.plain.Close(ctx), s.keyed.Close(ctx), s.bulk.Close(ctx))
}

// Save stores one task and returns its id when it is committed, and the row as it was stored, without the moments that
// the database sets. The row is nil where it may be one of an earlier save: with an error, and where a row with the id
// that the caller has chosen was met.
func (s *Saver) Save(ctx context.Context, task delaytask.Save) (int64, *row.Row, error) {
	n, err := s.prepare(ctx, task)
	if err != nil {
		return 0, nil, KeepUnknown(task.ID, err)
	}
	r := newRequest([]newRow{n})
	left := s.add(s.plain, r)
	if left == nil {
		left = r.wait(ctx)
	}
	id, err := s.result(r, &r.rows[0], left)
	if err != nil || r.rows[0].met && !n.drawn {
		return id, nil, err
	}
	stored := &r.rows[0].row
	stored.Created, stored.Updated = 0, 0
	return id, stored, nil
}

var errManySaves = fmt.Errorf("%w: too many saves are waiting for the database", delaytask.ErrOverloaded)

// add queues the request in the lane, or in the lane of rows with keys where another row may have its key or its id.
func (s *Saver) add(lane *batch.Coalescer[*request], r *request) error {
	if r.canCollide() {
		lane = s.keyed
	}
	err := lane.Add(r)
	if err == nil {
		return nil
	}
	r.leave()
	switch {
	case errors.Is(err, batch.ErrFull):
		return errManySaves
	case errors.Is(err, batch.ErrClosed):
		return delaytask.ErrClosed
	default:
		return err
	}
}

// result is what the caller gets for a row: the id of the new task, or of the unfinished one with its key.
func (s *Saver) result(r *request, n *newRow, left error) (int64, error) {
	if failing := s.failing.Load(); failing != nil && left != nil {
		r.blame(*failing)
	}
	err := r.outcome(n, left)
	if !n.drawn {
		err = KeepUnknown(n.row.ID, err)
	}
	s.Metrics.Saved(resultName(err), 1)
	if err == nil {
		return n.row.ID, nil
	}
	return existingID(err), err
}

// KeepUnknown is the error of a save under an id of the caller's, 0 for none. An earlier save with this id may still be
// applied. So an error that does not concern the row becomes "unknown": the caller would take it as the answer to both
// saves.
func KeepUnknown(id int64, err error) error {
	telling := []error{
		delaytask.ErrDuplicate, delaytask.ErrNotPending, delaytask.ErrConflict, delaytask.ErrChunkRefused,
		delaytask.ErrDelayTooLong, delaytask.ErrOutcomeUnknown,
	}
	switch {
	case id == 0, err == nil, row.ClassOf(err) == row.ClassCaller:
		return err
	case slices.ContainsFunc(telling, func(known error) bool { return errors.Is(err, known) }):
		return err
	default:
		return &delaytask.OutcomeUnknownError{ID: id, Err: err}
	}
}

// existingID is the id of the task whose key the row has, 0 for any other error.
func existingID(err error) int64 {
	if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok {
		return duplicate.ID
	}
	return 0
}

// resultName is what the metrics call the outcome.
func resultName(err error) string {
	switch {
	case err == nil:
		return metrics.SaveStored
	case errors.Is(err, delaytask.ErrDuplicate):
		return metrics.SaveDuplicate
	case errors.Is(err, delaytask.ErrOutcomeUnknown):
		return metrics.SaveUnknown
	case errors.Is(err, delaytask.ErrConflict):
		return metrics.SaveConflict
	case errors.Is(err, delaytask.ErrOverloaded), errors.Is(err, delaytask.ErrChunkRefused),
		row.ClassOf(err) == row.ClassCaller:
		return metrics.SaveRefused
	default:
		return metrics.SaveFailed
	}
}

// prepare makes the row. The delay counts from a moment that the database's clock has not passed yet, so a task is
// never due sooner than was asked for.
func (s *Saver) prepare(ctx context.Context, task delaytask.Save) (newRow, error) {
	if err := context.Cause(ctx); err != nil {
		return newRow{}, err
	}
	now, err := s.AtMost(ctx)
	if err != nil {
		return newRow{}, err
	}
	r := row.Row{
		ID: task.ID, Tag: task.Tag, Key: row.ScopedKey(task.Headers[delaytask.AppHeader], task.Key), Body: task.Body,
		Priority: task.Priority, MaxLate: task.MaxLate, LatePolicy: task.LatePolicy,
		TTR: task.TTR, MaxAttempts: task.MaxAttempts, Headers: encodeHeaders(task.Headers), Created: now, Updated: now,
	}
	r.Expected = Expected(now, task.Delay, task.At)
	if task.MaxWait > 0 {
		r.Expected = min(r.Expected, now.Add(task.MaxWait))
	}
	r.Delay = RoundUp(r.Expected.Sub(now))
	if r.Expected >= row.MaxTime {
		return newRow{}, delaytask.ErrDelayTooLong
	}
	r.Due = r.Expected
	s.setDefaults(&r, task.Unlimited)
	if task.ID == 0 {
		r.ID = s.NextID()
	}
	return newRow{row: r, at: row.At(task.At), drawn: task.ID == 0, reschedules: task.OnConflict != ""}, nil
}

// Expected is when a task is to run that was asked for at a moment: after the delay, or at a time when that is set.
func Expected(now row.Time, delay time.Duration, at time.Time) row.Time {
	if at.IsZero() {
		return now.Add(RoundUp(delay))
	}
	return max(row.At(at), now)
}

// RunOf returns what is stored of a task that a schedule saves again and again, without its times and its key.
func (s *Saver) RunOf(task *delaytask.Save) row.Row {
	r := row.Row{
		Tag: task.Tag, Body: task.Body, Priority: task.Priority, TTR: task.TTR, MaxAttempts: task.MaxAttempts,
		Headers: encodeHeaders(task.Headers),
	}
	s.setDefaults(&r, task.Unlimited)
	return r
}

// setDefaults fills in the defaults of the tag, and then of the scheduler.
func (s *Saver) setDefaults(r *row.Row, unlimited bool) {
	reg, _ := s.Registry.Lookup(r.Tag)
	if r.TTR == 0 {
		r.TTR = cmp.Or(reg.TTR, s.TTR)
	}
	if r.MaxAttempts == 0 && !unlimited {
		r.MaxAttempts = cmp.Or(reg.MaxAttempts, s.MaxAttempts)
	}
}

// AtMost returns a moment that the database's clock has not passed yet. It waits while that clock is not known. It
// returns the cause of ctx, or [delaytask.ErrClosed] when the life ends.
func (s *Saver) AtMost(ctx context.Context) (row.Time, error) {
	return s.Bounds.Await(ctx, s.Life, s.Bounds.AtMost)
}

// RoundUp rounds a delay up to whole milliseconds, the unit of its column. The longest [time.Duration] of 292 years,
// which stands for anything longer, is rounded down.
func RoundUp(d time.Duration) time.Duration {
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

// encodeHeaders renders headers for the column. No headers become NULL.
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

// isIn reports whether stored, the row with the new row's id, was stored by this save. A plain INSERT may have taken an
// id that was drawn here, even with the same content. A row of this save has the due time that was computed with the
// id, also when its statement is sent again. Only after an unknown outcome may another process have changed it since,
// which the version shows.
func (n *newRow) isIn(stored *row.Row, unsure bool) bool {
	switch {
	case !n.isStoredAs(stored):
		return false
	case !n.drawn, unsure && stored.Version > 0:
		return true
	default:
		return stored.Expected == n.row.Expected && stored.Delay == n.row.Delay
	}
}

// isStoredAs reports whether the stored row is what the new row asks for. A repeated save counts its delay from another
// moment, so either the delay or the due time has to agree. A save that asks for a moment in the past is due at once:
// the row of the first save has that moment itself, or had passed it already.
func (n *newRow) isStoredAs(stored *row.Row) bool {
	wanted := &n.row
	if stored.Tag != wanted.Tag || stored.Key != wanted.Key || string(stored.Body) != string(wanted.Body) {
		return false
	}
	return stored.Delay == wanted.Delay || stored.Expected == wanted.Expected ||
		!n.at.IsZero() && (stored.Expected == n.at || stored.Delay == 0 && stored.Expected > n.at)
}
