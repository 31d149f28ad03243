package control

import (
	"cmp"
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/row"
)

// Bulk is a change of all tasks that match a query, tag by tag and batch by batch in the order of their due times. It
// leaves out what has changed meanwhile.
type Bulk struct {
	Query    listing.Query  // Limit is the size of a batch, 500 when 0; the order is always by due time
	DryRun   bool           // count only, at most listing.MostCounted
	Progress func(done int) // called after every batch; may be nil
}

const (
	bulkPage  = 500
	bulkBytes = 16 << 20 // of errors in a batch
)

// CancelWhere cancels the pending tasks that match. It returns how many it changed, also beside an error. capped says
// that a dry run has not counted all.
func (e *Control) CancelWhere(ctx context.Context, b Bulk) (n int, capped bool, err error) {
	return e.changeWhere(ctx, b, row.Pending, cancelOf)
}

// RetryWhere retries the failed tasks that match. A task whose key another unfinished task has stays failed.
func (e *Control) RetryWhere(ctx context.Context, b Bulk) (n int, capped bool, err error) {
	return e.changeWhere(ctx, b, row.Failed, retryOf)
}

func (e *Control) changeWhere(
	ctx context.Context, b Bulk, from row.Status, change func(*row.Row, row.Time) row.Change,
) (done int, capped bool, err error) {
	q := b.Query
	if q.Status != nil && *q.Status != from {
		return 0, false, fmt.Errorf("%w: only %s tasks can be changed so, and the filter asks for %s ones",
			delaytask.ErrInvalidOption, from, *q.Status)
	}
	q.Status, q.Limit, q.MaxBytes = &from, cmp.Or(q.Limit, bulkPage), bulkBytes
	if q.Key == "" {
		q.Order = listing.ByDue
	}
	if b.DryRun {
		return listing.Count(ctx, e.Store, q)
	}
	tags := []string{q.Tag}
	if q.Tag == "" {
		q.Padded = true
		if tags, err = listing.Tags(ctx, e.Store, from); err != nil {
			return 0, false, err
		}
	}
	for _, q.Tag = range tags {
		n, err := e.changeTag(ctx, q, func(n int) {
			if b.Progress != nil {
				b.Progress(done + n)
			}
		}, change)
		if done += n; err != nil {
			return done, false, err
		}
	}
	return done, false, nil
}

// changeTag changes what matches of one tag.
func (e *Control) changeTag(
	ctx context.Context, q listing.Query, progress func(done int), change func(*row.Row, row.Time) row.Change,
) (done int, err error) {
	for {
		page, err := listing.Read(ctx, e.Store, q)
		if err != nil {
			return done, err
		}
		err = table.WhileLocked(ctx, bulkTries, func() error {
			n, err := e.changePage(ctx, page.Rows, change)
			done += n
			return err
		})
		if err != nil {
			return done, err
		}
		progress(done)
		if page.Next == nil {
			return done, nil
		}
		q.After = page.Next
	}
}

// changePage changes a page in one statement, or row by row when one of its rows is refused or locked.
func (e *Control) changePage(
	ctx context.Context, rows []row.Row, change func(*row.Row, row.Time) row.Change,
) (applied int, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	now, err := e.Certain(ctx)
	if err != nil {
		return 0, err
	}
	changes := make([]row.Change, len(rows))
	for i := range rows {
		changes[i] = change(&rows[i], now)
	}
	applied, err = e.Update(ctx, changes)
	e.tellCancelled(ctx, rows, changes, applied)
	if applied > 0 && changes[0].To == row.Pending {
		e.running.Wake(tagsOf(rows)) // all nodes share what is due now
	}
	taken := err != nil && row.ClassOf(err) == row.ClassDuplicate
	switch {
	case taken && len(rows) == 1:
		return 0, nil
	case err == nil, len(rows) == 1, !taken && !table.IsLocked(err):
		return applied, err
	}
	id := func(r row.Row) int64 { return r.ID }
	if held, _, asked := table.SplitLocked(ctx, e.Table, rows, id); !taken && asked == nil && len(held) == 0 {
		return applied, err // a range is locked: each row would wait
	}
	for i := range rows {
		err := table.WhileLocked(ctx, bulkTries, func() error {
			n, err := e.changePage(ctx, rows[i:i+1], change)
			applied += n
			return err
		})
		if err != nil && !table.IsLocked(err) {
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
	return row.Distinct(tags)
}

const bulkTries = 4 // within about 150 ms

// tellCancelled reports which rows of a page were cancelled. It asks for their states when not all were.
func (e *Control) tellCancelled(ctx context.Context, rows []row.Row, changes []row.Change, applied int) {
	if applied == 0 || changes[0].To != row.Cancelled || !e.Watched() {
		return
	}
	var states map[int64]row.State
	if applied < len(rows) {
		ids := row.IDsOf(rows, func(r row.Row) int64 { return r.ID })
		var err error
		if states, err = e.ReadBack(ctx, "reading back what was cancelled", ids); err != nil {
			return
		}
	}
	for i := range rows {
		s, c := states[rows[i].ID], &changes[i]
		if applied == len(rows) || s.Status == row.Cancelled && s.Version == c.Version+1 && s.Due == c.Due {
			e.Tell(delaytask.EventCancelled, &rows[i], nil)
		}
	}
}
