package engine

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// saveTx stores one task inside the caller's transaction. Nothing is retried there: the caller starts his transaction again.
func (s *saver) saveTx(ctx context.Context, tx Tx, task processor.Save, commits *commits) (int64, error) {
	d, err := s.prepare(ctx, task)
	if err != nil {
		return 0, err
	}
	if err := inTransaction(ctx, s.store, tx); err != nil {
		return 0, err
	}
	err = s.store.Insert(ctx, tx, []row.Row{d.row})
	if row.ClassOf(err) == row.ClassDuplicate && err != nil {
		err = s.metInTx(ctx, tx, &d, err)
	}
	s.Metrics.Saved(saveResult(err), 1)
	if err == nil {
		commits.add([]row.Due{dueOf(&d.row)})
		return d.row.ID, nil
	}
	return existing(err), err
}

// metInTx says what a row met inside the transaction. A refused statement has changed nothing, so a number that a plain INSERT
// took first is simply replaced.
func (s *saver) metInTx(ctx context.Context, tx Tx, d *draft, refusal error) error {
	rows, broken, err := s.store.Get(ctx, tx, []int64{d.row.ID})
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
		active, err := s.store.FindActive(ctx, tx, []row.TagKey{{Tag: d.row.Tag, Key: d.row.Key}})
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
	d.row.ID = s.ids.Next()
	return s.store.Insert(ctx, tx, []row.Row{d.row})
}
