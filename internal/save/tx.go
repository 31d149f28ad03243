package save

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// SaveTx stores one task inside the caller's transaction. Nothing is retried there: the caller retries its whole
// transaction.
func (s *Saver) SaveTx(ctx context.Context, tx delaytask.Tx, task delaytask.Save) (int64, error) {
	n, err := s.prepare(ctx, task)
	if err != nil {
		return 0, err
	}
	if err := store.InTransaction(ctx, s.Store, tx); err != nil {
		return 0, err
	}
	err = s.Store.Insert(ctx, tx, []row.Row{n.row})
	if row.ClassOf(err) == row.ClassDuplicate && err != nil {
		err = s.collidedInTx(ctx, tx, &n, err)
	}
	s.Metrics.Saved(resultName(err), 1)
	if err == nil {
		s.InTx(n.row.Sighting())
		return n.row.ID, nil
	}
	return existingID(err), err
}

// collidedInTx decides what a row has met inside the transaction. A refused statement has changed nothing, so an id
// that a plain INSERT has taken is simply replaced.
func (s *Saver) collidedInTx(ctx context.Context, tx delaytask.Tx, n *newRow, refusal error) error {
	if n.drawn && n.reschedules {
		// The caller locks the task that carries the key. A read of the snapshot before that would let MariaDB with
		// innodb_snapshot_isolation refuse to lock a row that has changed since.
		return &delaytask.DuplicateError{}
	}
	rows, broken, err := s.Store.Get(ctx, tx, []int64{n.row.ID})
	if err != nil {
		return err
	}
	if len(rows) == 1 && n.isIn(&rows[0], false) { // no statement is sent again here
		return nil
	}
	taken := len(rows)+len(broken) > 0
	if n.row.Key != "" && (n.drawn || n.reschedules || !taken) {
		active, err := s.Store.FindActive(ctx, tx, []row.TagKey{{Tag: n.row.Tag, Key: n.row.Key}})
		if err != nil {
			return err
		}
		if len(active) == 1 && (n.drawn || !taken || active[0].ID == n.row.ID) {
			return &delaytask.DuplicateError{ID: active[0].ID}
		}
	}
	if taken && !n.drawn {
		return delaytask.ErrConflict
	}
	if !taken && n.row.Key != "" && (n.drawn || n.reschedules) {
		return &delaytask.DuplicateError{} // committed after this transaction's snapshot, which does not show it
	}
	if !taken {
		return refusal
	}
	n.row.ID = s.NextID()
	return s.Store.Insert(ctx, tx, []row.Row{n.row})
}
