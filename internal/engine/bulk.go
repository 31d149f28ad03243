package engine

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Bulk is a change of all tasks that match a filter, page by page in the order of their ids. It leaves out what has
// changed meanwhile.
type Bulk struct {
	Filter   row.Filter     // AfterID is where to begin; Limit is the size of a page, 500 when 0
	DryRun   bool           // count only
	Progress func(done int) // called after every page; may be nil
}

const (
	bulkPage  = 500
	bulkBytes = 16 << 20 // of errors in a page
)

// CancelWhere cancels the pending tasks that match. It returns how many it changed, also beside an error.
func (e *Engine) CancelWhere(ctx context.Context, b Bulk) (int, error) {
	return e.changeWhere(ctx, b, row.Pending, cancelOf)
}

// RetryWhere retries the failed tasks that match. A task whose key another unfinished task has stays failed.
func (e *Engine) RetryWhere(ctx context.Context, b Bulk) (int, error) {
	return e.changeWhere(ctx, b, row.Failed, retryOf)
}

func (e *Engine) changeWhere(
	ctx context.Context, b Bulk, from row.Status, change func(*row.Row, row.Time) row.Change,
) (int, error) {
	f := b.Filter
	if f.Status != nil && *f.Status != from {
		return 0, fmt.Errorf("%w: only %s tasks can be changed so, and the filter asks for %s ones",
			processor.ErrInvalidOption, from, *f.Status)
	}
	f.Status = &from
	if f.Limit <= 0 {
		f.Limit = bulkPage
	}
	f.MaxBytes = bulkBytes
	done := 0
	for {
		rows, broken, err := e.store.List(ctx, f, false)
		if err != nil {
			return done, err
		}
		if b.DryRun {
			done += len(rows)
		} else {
			n, err := e.changePage(ctx, rows, change)
			done += n
			if err != nil {
				return done, err
			}
		}
		if b.Progress != nil {
			b.Progress(done)
		}
		if !f.Full(rows, broken) {
			return done, nil
		}
		f.AfterID = lastID(rows, broken)
	}
}

// changePage changes a page in one statement, or row by row when one of its rows is refused or locked.
func (e *Engine) changePage(
	ctx context.Context, rows []row.Row, change func(*row.Row, row.Time) row.Change,
) (applied int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	now, err := e.certain(ctx)
	if err != nil {
		return 0, err
	}
	changes := make([]row.Change, len(rows))
	for i := range rows {
		changes[i] = change(&rows[i], now)
	}
	applied, err = e.update(ctx, changes)
	e.tellCancelled(ctx, rows, changes, applied)
	if applied > 0 && changes[0].To == row.Pending {
		e.Wake(tagsOf(rows)) // all nodes share what is due now
	}
	switch taken := err != nil && row.ClassOf(err) == row.ClassDuplicate; {
	case taken && len(rows) == 1:
		return 0, nil
	case err == nil, len(rows) == 1, !taken && !isLocked(err):
		return applied, err
	}
	for i := range rows {
		err := whileLocked(ctx, bulkTries, func() error {
			n, err := e.changePage(ctx, rows[i:i+1], change)
			applied += n
			return err
		})
		if err != nil && !isLocked(err) {
			return applied, err
		}
	}
	return applied, nil
}

func tagsOf(rows []row.Row) []string {
	tags := make([]string, len(rows))
	for i := range rows {
		tags[i] = rows[i].Tag
	}
	return distinct(tags)
}

const bulkTries = 4 // within about 150 ms

func lastID(rows []row.Row, broken []row.Broken) (last int64) {
	for i := range rows {
		last = max(last, rows[i].ID)
	}
	for _, b := range broken {
		last = max(last, b.ID)
	}
	return last
}

// tellCancelled reports which rows of a page were cancelled. It asks for their states when not all were.
func (e *Engine) tellCancelled(ctx context.Context, rows []row.Row, changes []row.Change, applied int) {
	if applied == 0 || changes[0].To != row.Cancelled || e.watch.watchers.Load() == 0 {
		return
	}
	var states map[int64]row.State
	if applied < len(rows) {
		ids := idsOf(rows, func(r row.Row) int64 { return r.ID })
		var err error
		if states, err = e.readBack(ctx, "reading back what was cancelled", ids); err != nil {
			return
		}
	}
	for i := range rows {
		s, c := states[rows[i].ID], &changes[i]
		if applied == len(rows) || s.Status == row.Cancelled && s.Version == c.Version+1 && s.Due == c.Due {
			e.watch.tell(processor.EventCancelled, &rows[i], nil)
		}
	}
}
