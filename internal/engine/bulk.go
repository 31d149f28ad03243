package engine

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// Bulk is a change of all tasks that match a filter, page by page in the order of their ids. What changed meanwhile is
// left out.
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

// RetryWhere retries the failed tasks that match. A task whose key is taken by now stays failed.
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

// changePage changes a page in one statement; when one of its rows is refused or locked, row by row.
func (e *Engine) changePage(ctx context.Context, rows []row.Row, change func(*row.Row, row.Time) row.Change) (int, error) {
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
	applied, err := e.update(ctx, changes)
	switch {
	case err == nil:
		return applied, nil
	case len(rows) == 1:
		if row.ClassOf(err) == row.ClassDuplicate {
			return 0, nil
		}
		return 0, err
	case row.ClassOf(err) != row.ClassDuplicate && row.ClassOf(err) != row.ClassLocked:
		return 0, err
	}
	for i := range rows {
		n, err := e.changeRow(ctx, rows[i:i+1], change)
		applied += n
		if err != nil && row.ClassOf(err) != row.ClassLocked {
			return applied, err
		}
	}
	return applied, nil
}

// changeRow gives a row a few tries that somebody holds: another node may only be asking whether it is locked.
func (e *Engine) changeRow(ctx context.Context, one []row.Row, change func(*row.Row, row.Time) row.Change) (applied int, err error) {
	for n := range bulkTries {
		applied, err = e.changePage(ctx, one, change)
		if err == nil || row.ClassOf(err) != row.ClassLocked || !lifecycle.Sleep(ctx, lifecycle.Backoff(n)) {
			break
		}
	}
	return applied, err
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
