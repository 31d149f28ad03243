package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

var errNotFinal = errors.New("only tasks of a final status can be purged")

// Purge implements [store.Keeper]. Rows are found tag by tag, because the index can be read up to a due time only
// within a tag.
func (s *Store) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, &row.Error{Class: row.ClassCaller, Op: op, Err: errNotFinal}
	}
	if limit <= 0 {
		return 0, nil
	}
	ids, err := s.purgeable(ctx, status, before, limit)
	if err != nil || len(ids) == 0 {
		return 0, classify(op, err)
	}
	query, args := s.dialect.purge(status, before, ids)
	var deleted int
	err = s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		deleted, err = execute(ctx, conn, query, args)
		return err
	})
	return deleted, err
}

func (s *Store) purgeable(ctx context.Context, status row.Status, before row.Time, limit int) ([]int64, error) {
	var old []string
	err := scan(ctx, s.db, s.dialect.oldest, []any{int64(status)}, func(r *record) error {
		if due := r.due(); due.Due < before {
			old = append(old, due.Tag)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, tag := range old {
		query, args := s.dialect.purgeable(status, tag, before, limit-len(ids))
		found, err := selectIDs(ctx, s.db, query, args...)
		if err != nil {
			return nil, err
		}
		if ids = append(ids, found...); len(ids) == limit {
			break
		}
	}
	return sortedIDs(ids, func(id int64) int64 { return id }), nil
}

func (d dialect) purgeable(status row.Status, tag string, before row.Time, limit int) (string, []any) {
	return "SELECT id FROM " + table + d.byDue + " WHERE status = ? AND tag = ? AND due_time < ? ORDER BY due_time, id LIMIT ?",
		[]any{int64(status), tag, before, limit}
}

func (d dialect) purge(status row.Status, before row.Time, ids []int64) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, table) + " WHERE t.id IN (" + idList(ids) + ") AND status = ? AND due_time < ?",
		[]any{int64(status), before}
}
