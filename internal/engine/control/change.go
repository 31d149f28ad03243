package control

import (
	"bytes"
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// change applies one fenced transition to a row, and finds the row again when it has moved meanwhile. It returns the
// row as it was before, and what the run queue has to know of it now.
func (e *Control) change(
	ctx context.Context, tx store.Tx, ref Ref, decide func(*row.Row, row.Time) (row.Change, error),
) (met row.Row, after row.Due, err error) {
	if tx != nil {
		if err := store.InTransaction(ctx, e.Store, tx); err != nil {
			return met, after, err
		}
	}
	return e.tryChange(ctx, tx, ref, decide, tries{})
}

// tries says how a change is tried.
type tries struct {
	patient bool        // wait for a database that is away, and for transactions of others, until the context ends
	unsure  *row.Change // one that was sent, and may be applied by now
}

// tryChange is change after the check of the transaction. Its error may be an [unsureError].
func (e *Control) tryChange(
	ctx context.Context, tx store.Tx, ref Ref, decide func(*row.Row, row.Time) (row.Change, error), how tries,
) (met row.Row, after row.Due, err error) {
	unsure, patient := how.unsure, how.patient
	defer func() {
		if err != nil && unsure != nil {
			err = unsureError{err}
		}
	}()
	for n, refused := 0, 0; refused < table.ChangeTries; n++ {
		if n > 0 && (tx != nil || !lifecycle.Sleep(ctx, lifecycle.Backoff(n))) {
			break
		}
		if e.Life.Err() != nil {
			return met, after, delaytask.ErrClosed
		}
		r, err := e.find(ctx, tx, ref)
		if patient && table.MayPass(ctx, err) {
			continue
		}
		if err != nil {
			return met, after, err
		}
		if unsure != nil && hasEffect(r, unsure) {
			if r.Status == row.Pending {
				after = r.Sighting()
			}
			return met, after, nil
		}
		if unsure != nil && r.Version == unsure.Version+1 { // another change has taken the version that it names
			unsure = nil
		}
		now, err := e.Certain(ctx)
		if err != nil {
			return *r, after, err
		}
		c, err := decide(r, now)
		if err == nil && ref.Version != nil && *ref.Version != r.Version {
			err = delaytask.ErrVersionChanged
		}
		if err != nil {
			return *r, after, err
		}
		applied, err := e.write(ctx, tx, c)
		if row.ClassOf(err) == row.ClassDuplicate && err != nil {
			return *r, after, e.keyTaken(ctx, r, err)
		}
		if err != nil && (tx != nil || !table.MayRetry(err)) {
			return *r, after, err
		}
		if applied == 1 || err != nil && e.isChanged(ctx, &c) {
			return *r, table.AfterChange(r, c), nil
		}
		if row.ClassOf(err) == row.ClassUnknown && err != nil {
			met, unsure, ref = *r, &c, Ref{ID: r.ID, Version: ref.Version}
		}
		if !patient || err == nil {
			refused++
		}
	}
	if err := context.Cause(ctx); err != nil {
		return met, after, err
	}
	return met, after, delaytask.ErrContended
}

// unsureError is the error of a change that an earlier statement may have applied.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// callOf bounds a call of the store. In a transaction its caller does.
func (e *Control) callOf(ctx context.Context, tx store.Tx) (context.Context, context.CancelFunc) {
	if tx != nil {
		return ctx, func() {}
	}
	return e.CallIn(ctx)
}

func (e *Control) find(ctx context.Context, tx store.Tx, ref Ref) (*row.Row, error) {
	ctx, cancel := e.callOf(ctx, tx)
	defer cancel()
	var rows []row.Row
	var broken []row.Broken
	var err error
	if ref.ID != 0 {
		rows, broken, err = e.Store.Get(ctx, tx, []int64{ref.ID})
	} else {
		rows, err = e.Store.FindActive(ctx, tx, []row.TagKey{{Tag: ref.Tag, Key: ref.Key}})
	}
	return table.OnlyRow(rows, broken, err)
}

func (e *Control) write(ctx context.Context, tx store.Tx, c row.Change) (applied int, err error) {
	ctx, cancel := e.callOf(ctx, tx)
	defer cancel()
	if tx != nil {
		return e.Store.Update(ctx, tx, []row.Change{c}) // on its caller's connection
	}
	return e.Update(ctx, []row.Change{c})
}

// isChanged reads back a change of unknown outcome.
func (e *Control) isChanged(ctx context.Context, c *row.Change) bool {
	ctx, cancel := e.CallIn(ctx)
	defer cancel()
	rows, _, err := e.Store.Get(ctx, nil, []int64{c.ID})
	return err == nil && len(rows) == 1 && hasEffect(&rows[0], c)
}

// hasEffect reports whether the row is as the change leaves it. The version alone does not tell: another process may
// have made the row pending as well, with another due time. A reschedule still shows in later versions, as no claim and
// no result writes the expected time.
func hasEffect(r *row.Row, c *row.Change) bool {
	switch {
	case r.Version <= c.Version, c.Body != nil && !bytes.Equal(r.Body, c.Body):
		return false
	case !c.Expected.IsZero():
		return r.Expected == c.Expected
	default:
		return r.Version == c.Version+1 && r.Status == c.To && (c.To != row.Pending || r.Due == c.Due)
	}
}

// keyTaken returns a [delaytask.DuplicateError] with the unfinished task that has the key of a retried one.
func (e *Control) keyTaken(ctx context.Context, r *row.Row, refusal error) error {
	active, err := e.Store.FindActive(ctx, nil, []row.TagKey{{Tag: r.Tag, Key: r.Key}})
	if err != nil {
		return err
	}
	if len(active) == 0 {
		return refusal
	}
	return &delaytask.DuplicateError{ID: active[0].ID}
}

// armAfter arms a row that was changed, after the commit when that was in a caller's transaction. A row without a due
// time has no timer.
func (e *Control) armAfter(tx store.Tx, d row.Due) {
	switch {
	case d.Due.IsZero():
	case tx != nil:
		e.running.Committing(d)
	default:
		e.running.Written(d)
	}
}
