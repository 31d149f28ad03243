package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// List implements [store.Keeper].
func (s *Store) List(ctx context.Context, f row.Filter, bodies bool) ([]row.Row, []row.Broken, error) {
	if f.Limit <= 0 {
		return nil, nil, nil
	}
	var found page
	size := 0
	query, args := s.dialect.list(f, bodies)
	err := scan(ctx, s.db, query, args, func(r *record) error {
		before := len(found.rows)
		if err := found.add(r); err != nil || len(found.rows) == before {
			return err
		}
		if size += found.rows[before].Size(); f.MaxBytes > 0 && size >= f.MaxBytes {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return found.rows, found.broken, classify("list tasks", err)
}

// errFull ends a read whose page is large enough.
var errFull = errors.New("the page is full")

func (d dialect) list(f row.Filter, bodies bool) (string, []any) {
	where := []string{"id > ?"}
	args := []any{f.AfterID}
	and := func(condition string, more ...any) {
		where = append(where, condition)
		args = append(args, more...)
	}
	switch {
	case f.Status != nil:
		and("status = ?", int64(*f.Status))
	case f.Tag != "":
		// Equal to no condition at all, but it lets the index (status, tag, due_time) find the tag.
		and(fmt.Sprintf("status IN (%d, %d, %d, %d, %d)", row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled))
	}
	if f.Tag != "" {
		and("tag = ?", f.Tag)
		and(fmt.Sprintf(d.sameText, "tag"), f.Tag) // spaces at its end count
	}
	if f.Key != "" {
		and(fmt.Sprintf(d.sameText, "task_key"), f.Key)
	}
	hint := ""
	switch {
	case f.Key == "" || f.Tag == "":
	case unfinished(f.Status):
		hint = d.byKey
		and("active_key = UNHEX(?)", d.activeKey(row.TagKey{Tag: f.Tag, Key: f.Key}))
	default:
		hint = d.byDue
	}
	if !f.DueBefore.IsZero() {
		and("due_time < ?", f.DueBefore)
	}
	return "SELECT " + d.selectList(bodies) + " FROM " + table + hint + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY id LIMIT " + fmt.Sprint(f.Limit), args
}

func unfinished(status *row.Status) bool {
	return status != nil && (*status == row.Pending || *status == row.Executing)
}
