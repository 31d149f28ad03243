package save

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// prepare makes the row. The delay counts from a moment that the database's clock has not passed yet, so a task is
// never due sooner than was asked for.
func (s *Saver) prepare(ctx context.Context, task processor.Save) (newRow, error) {
	if err := context.Cause(ctx); err != nil {
		return newRow{}, err
	}
	now, err := s.AtMost(ctx)
	if err != nil {
		return newRow{}, err
	}
	r := row.Row{
		ID: task.ID, Tag: task.Tag, Key: row.ScopedKey(task.Headers[processor.AppHeader], task.Key), Body: task.Body,
		Priority: task.Priority, MaxLate: task.MaxLate, LatePolicy: row.LatePolicy(task.LatePolicy),
		TTR: task.TTR, MaxAttempts: task.MaxAttempts, Headers: encodeHeaders(task.Headers), Created: now, Updated: now,
	}
	if task.At.IsZero() {
		r.Delay = RoundUp(task.Delay)
		r.Expected = now.Add(r.Delay)
	} else {
		r.Expected = max(row.At(task.At), now)
		r.Delay = RoundUp(r.Expected.Sub(now))
	}
	if r.Expected >= row.MaxTime {
		return newRow{}, processor.ErrDelayTooLong
	}
	r.Due = r.Expected
	s.setDefaults(&r, task.Unlimited)
	if task.ID == 0 {
		r.ID = s.IDs.Next()
	}
	return newRow{row: r, at: row.At(task.At), drawn: task.ID == 0}, nil
}

// setDefaults fills in what the task leaves to its tag, and the tag to the scheduler.
func (s *Saver) setDefaults(r *row.Row, unlimited bool) {
	reg, _ := s.Registry.Lookup(r.Tag)
	if r.TTR == 0 {
		r.TTR = cmp.Or(reg.TTR, s.TTR)
	}
	if r.MaxAttempts == 0 && !unlimited {
		r.MaxAttempts = cmp.Or(reg.MaxAttempts, s.MaxAttempts)
	}
}

// AtMost returns a moment that the database's clock has not passed yet. It waits while that clock is not known, and
// returns the cause of ctx, or [processor.ErrClosed] when the life ends.
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

// isIn reports whether the row that is stored under the new row's id is the new row. A plain INSERT may have taken an
// id that was drawn here, even with the same content. A row of this save carries the due time that was computed with
// the id, and keeps it when its statement is sent again. Only after an unknown outcome may another process have moved
// it since, which the version shows.
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
