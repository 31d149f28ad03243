package memstore

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

var (
	errIDTaken  = errors.New("the id is taken")
	errKeyTaken = errors.New("an unfinished task carries the key")
)

// InTransaction implements [store.Saver]. The store has no transactions, so it trusts the caller.
func (s *Store) InTransaction(context.Context, delaytask.Tx) (bool, error) { return true, nil }

// Insert implements [store.Saver].
func (s *Store) Insert(ctx context.Context, tx delaytask.Tx, rows []row.Row) error {
	const op = "insert tasks"
	if tx != nil {
		return refusedTo(op, errTx)
	}
	into := make([]landing, len(rows))
	for i, r := range rows {
		into[i] = landing{r.ID, r.Tag, row.Pending}
	}
	if err := s.enterRows(ctx, op, nil, into...); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.now()
	for i, r := range rows {
		if err := s.insert(r, now); err != nil {
			for _, undo := range rows[:i] {
				s.tasks.delete(undo.ID)
			}
			return duplicate(op, err)
		}
	}
	for _, r := range rows {
		s.notify(r.ID)
	}
	return nil
}

// insert copies the columns that a save sets, durations in whole milliseconds. The others have the values of a new row.
func (s *Store) insert(r row.Row, now row.Time) error {
	if _, taken := s.tasks.rows[r.ID]; taken {
		return errIDTaken
	}
	fresh := row.Row{
		ID: r.ID, Tag: r.Tag, Key: r.Key, Body: r.Body,
		MaxAttempts: r.MaxAttempts, TTR: r.TTR.Truncate(time.Millisecond), Priority: r.Priority, Headers: r.Headers,
		MaxLate: r.MaxLate.Truncate(time.Millisecond), LatePolicy: r.LatePolicy,
		Delay: r.Delay.Truncate(time.Millisecond), Expected: r.Expected, Due: r.Due,
		Created: now, Updated: now, TickOf: r.TickOf,
	}
	if !s.tasks.put(clone(fresh)) {
		return errKeyTaken
	}
	return nil
}

// Get implements [store.Saver].
func (s *Store) Get(ctx context.Context, tx delaytask.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if err := s.enterTx(ctx, tx, "read tasks"); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	page := s.tasks.page(ids, true)
	return page.rows, page.broken, nil
}

// FindActive implements [store.Saver].
func (s *Store) FindActive(ctx context.Context, tx delaytask.Tx, keys []row.TagKey) ([]row.Row, error) {
	if err := s.enterTx(ctx, tx, "find tasks by key"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var ids []int64
	for _, k := range keys {
		if id, ok := s.tasks.active[activeKey(k.Tag, k.Key)]; ok {
			ids = append(ids, id)
		}
	}
	return s.tasks.page(ids, true).rows, nil
}

// LockActive implements [store.Saver]. The store has no transactions whose locks a row could keep.
func (s *Store) LockActive(ctx context.Context, tx delaytask.Tx, key row.TagKey) ([]row.Row, []row.Broken, error) {
	rows, err := s.FindActive(ctx, tx, []row.TagKey{key})
	return rows, nil, err
}
