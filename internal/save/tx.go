package save

import (
	"context"
	"database/sql"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// SaveTx stores one task inside the caller's transaction. Nothing is retried there: the caller starts its transaction again.
func (s *Saver) SaveTx(ctx context.Context, tx processor.Tx, task processor.Save) (int64, error) {
	d, err := s.prepare(ctx, task)
	if err != nil {
		return 0, err
	}
	if err := InTransaction(ctx, s.Store, tx); err != nil {
		return 0, err
	}
	err = s.Store.Insert(ctx, tx, []row.Row{d.row})
	if row.ClassOf(err) == row.ClassDuplicate && err != nil {
		err = s.metInTx(ctx, tx, &d, err)
	}
	s.Metrics.Saved(saveResult(err), 1)
	if err == nil {
		s.InTx(d.row.Sighting())
		return d.row.ID, nil
	}
	return existing(err), err
}

// metInTx says what a row met inside the transaction. A refused statement has changed nothing, so a number that a plain INSERT
// took first is simply replaced.
func (s *Saver) metInTx(ctx context.Context, tx processor.Tx, d *draft, refusal error) error {
	rows, broken, err := s.Store.Get(ctx, tx, []int64{d.row.ID})
	if err != nil {
		return err
	}
	if len(rows) == 1 && d.isIn(&rows[0], false) { // no statement is sent again here
		return nil
	}
	taken := len(rows)+len(broken) > 0
	if taken && !d.drawn {
		return processor.ErrConflict
	}
	if d.row.Key != "" {
		active, err := s.Store.FindActive(ctx, tx, []row.TagKey{{Tag: d.row.Tag, Key: d.row.Key}})
		if err != nil {
			return err
		}
		if len(active) == 1 {
			return &processor.DuplicateError{ID: active[0].ID}
		}
	}
	if !taken && d.row.Key != "" && d.drawn {
		return &processor.DuplicateError{} // committed after this transaction's snapshot, which does not show it
	}
	if !taken {
		return refusal
	}
	d.row.ID = s.IDs.Next()
	return s.Store.Insert(ctx, tx, []row.Row{d.row})
}

// What types tell by their methods. None is demanded: GORM, bun, sqlc and ent hand out interfaces that show less.
type (
	ender interface { // a transaction
		Commit() error
		Rollback() error
	}
	pool        interface{ Stats() sql.DBStats }
	wrappedPool interface{ GetDBConn() (*sql.DB, error) } // GORM's, and with an end GORM's transaction
)

// InTransaction returns [processor.ErrNoTransaction] for what commits each statement by itself, as a pool does. Only
// the database knows what the type does not tell.
func InTransaction(ctx context.Context, store interface {
	InTransaction(ctx context.Context, tx processor.Tx) (bool, error)
}, tx processor.Tx) error {
	_, ends := tx.(ender)
	_, pools := tx.(pool)
	_, wraps := tx.(wrappedPool)
	switch {
	case ends && !pools:
		return nil
	case !ends && (pools || wraps):
		return processor.ErrNoTransaction
	}
	inside, err := store.InTransaction(ctx, tx)
	if err == nil && !inside {
		err = processor.ErrNoTransaction
	}
	return err
}
