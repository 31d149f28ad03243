package sqlstore

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/row"
)

// Expired implements [store.Finder]. An executing row without a due time has no lease that could end, so it counts as ended.
func (s *Store) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	var found page
	err := scan(ctx, s.db, s.dialect.expired(limit), nil, found.add)
	return found.rows, found.broken, classify("find ended leases", err)
}

func (d dialect) expired(limit int) string {
	return "SELECT " + d.selectList(false) + " FROM " + table + d.byDue +
		fmt.Sprintf(" WHERE status = %d", row.Executing) + " AND (due_time IS NULL OR due_time < " + d.now + ")" +
		" ORDER BY " + table + ".due_time, id LIMIT " + fmt.Sprint(limit)
}

// Strays implements [store.Finder].
func (s *Store) Strays(ctx context.Context, executorPrefix string, limit int) ([]row.State, error) {
	var found []row.State
	query, args := s.dialect.strays(executorPrefix, limit)
	err := scan(ctx, s.db, query, args, func(r *record) error {
		found = append(found, r.state())
		return nil
	})
	return found, classify("find executing tasks", err)
}

func (d dialect) strays(prefix string, limit int) (string, []any) {
	return "SELECT " + d.stateList() + " FROM " + table + d.byDue +
		fmt.Sprintf(" WHERE status = %d", row.Executing) + " AND " + fmt.Sprintf(d.sameText, "SUBSTR(executor, 1, ?)") +
		" ORDER BY id LIMIT " + fmt.Sprint(limit), []any{utf8.RuneCountInString(prefix), prefix}
}
