package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// saver stores new tasks. Saves that arrive while a statement is in flight travel together in the next one, but each caller is
// answered for himself: a duplicate, a refused row or a context that ends changes the answer of that caller alone.
type saver struct {
	*core
	ids   *ids
	arm   *armer
	plain *batch.Coalescer[*saving] // rows that nothing can refuse and no lock can delay
	keyed *batch.Coalescer[*saving] // rows that can meet another row: a unique key, a caller's id
	bulk  *batch.Coalescer[*saving] // plain rows that came many at a time: several connections, so that single saves do not wait

	held    heldKeys
	patient chan struct{} // one for each saving that is sent again by itself

	met atomic.Pointer[time.Time] // when a save last met a key that is taken
}

// The bounds of one INSERT and of what may wait for it. A statement stays far below the smallest packet limit in use (16 MiB).
const (
	saveRows  = 500
	saveBytes = 4 << 20
	saveQueue = 64 << 20
)

func newSaver(c *core, ids *ids, arm *armer) *saver {
	s := &saver{core: c, ids: ids, arm: arm, patient: make(chan struct{}, patientSaves)}
	lane := func(flushers int) *batch.Coalescer[*saving] {
		return batch.New(batch.Config[*saving]{
			Flush: s.flush, Panicked: s.panicked, Flushers: flushers,
			MaxItems: saveRows, MaxBytes: saveBytes, QueueBytes: saveQueue, Count: (*saving).rows, Size: (*saving).size,
		})
	}
	s.plain, s.keyed, s.bulk = lane(2), lane(1), lane(3)
	return s
}

// close stores what is queued and stops taking more.
func (s *saver) close(ctx context.Context) error {
	return errors.Join(s.plain.Close(ctx), s.keyed.Close(ctx), s.bulk.Close(ctx))
}

// save stores one task and returns its id.
func (s *saver) save(ctx context.Context, task processor.Save) (int64, *row.Row, error) {
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
func (s *saver) add(lane *batch.Coalescer[*saving], it *saving) error {
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
func (s *saver) result(it *saving, d *draft, left error) (int64, error) {
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
func (s *saver) prepare(ctx context.Context, task processor.Save) (draft, error) {
	if err := context.Cause(ctx); err != nil {
		return draft{}, err
	}
	now, err := s.atMost(ctx)
	if err != nil {
		return draft{}, err
	}
	r := row.Row{
		ID: task.ID, Tag: task.Tag, Key: row.ScopedKey(task.Headers[processor.AppHeader], task.Key), Body: task.Body,
		Priority: task.Priority, MaxLate: task.MaxLate, LatePolicy: row.LatePolicy(task.LatePolicy),
		TTR: task.TTR, MaxAttempts: task.MaxAttempts, Headers: encodeHeaders(task.Headers), Created: now, Updated: now,
	}
	if task.At.IsZero() {
		r.Delay = ceilMillis(task.Delay)
		r.Expected = now.Add(r.Delay)
	} else {
		r.Expected = max(row.At(task.At), now)
		r.Delay = ceilMillis(r.Expected.Sub(now))
	}
	if r.Expected >= row.MaxTime {
		return draft{}, processor.ErrDelayTooLong
	}
	r.Due = r.Expected
	s.defaults(&r, task.Unlimited)
	if task.ID == 0 {
		r.ID = s.ids.Next()
	}
	return draft{row: r, at: row.At(task.At), drawn: task.ID == 0}, nil
}

// defaults fills in what the task left to the tag, and the tag to the engine.
func (s *saver) defaults(r *row.Row, unlimited bool) {
	reg, _ := s.cfg.Registry.Lookup(r.Tag)
	if r.TTR == 0 {
		r.TTR = cmp.Or(reg.TTR, s.cfg.TTR)
	}
	if r.MaxAttempts == 0 && !unlimited {
		r.MaxAttempts = cmp.Or(reg.MaxAttempts, s.cfg.MaxAttempts)
	}
}

// atMost waits for an anchor of the clock if there is none.
func (s *saver) atMost(ctx context.Context) (row.Time, error) {
	for {
		if now, ok := s.clock.AtMost(); ok {
			return now, nil
		}
		select {
		case <-s.clock.Anchored():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-s.Life.Done():
			return 0, processor.ErrClosed
		}
	}
}

// ceilMillis rounds a delay up to whole milliseconds, the unit it is stored in. The longest delay there is (292 years, which
// stands for anything longer) is rounded down.
func ceilMillis(d time.Duration) time.Duration {
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
