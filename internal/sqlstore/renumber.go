package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// Renumber implements [store.Keeper]. An id that AUTO_INCREMENT made after the last one is larger than an int64.
func (s *Store) Renumber(ctx context.Context, last int64, next func() int64, limit int) (moved int, mend string, err error) {
	const op = "give tasks other ids"
	var ids []string
	err = scan(ctx, s.db, s.dialect.misnumbered(last, limit), nil, func(r *record) error {
		ids = append(ids, string(r.ID))
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, "", classify(op, err)
	}
	err = s.keep.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
		for _, id := range ids {
			n, err := execute(ctx, conn, s.own.renumber(id, next()), nil)
			if err != nil {
				return err
			}
			moved += n
		}
		return nil
	})
	return moved, s.dialect.countOn, err
}

// misnumbered reads both ends by themselves: SQLite would read everything for one range or the other.
func (d dialect) misnumbered(last int64, limit int) string {
	var ends []clause
	for _, end := range []string{"id < 1", fmt.Sprint("id > ", last)} {
		ends = append(ends, clause{sql: fmt.Sprintf("SELECT id FROM %s%s WHERE %s AND status <> %d ORDER BY id LIMIT %d",
			table, d.byID, end, row.Executing, limit)})
	}
	return unionAll(ends).sql
}

func (d dialect) renumber(id string, to int64) string {
	return fmt.Sprintf(d.updateListed, fmt.Sprintf("id = %d", to), fmt.Sprintf("t.id = %s AND status <> %d", id, row.Executing))
}
