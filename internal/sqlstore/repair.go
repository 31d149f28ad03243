package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Adopt implements [store.Leaser]. A due time before any that delaytask knows, like the zero date of a lax server,
// counts as none.
func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	if len(rows) == 0 {
		return nil
	}
	query, args := s.own.adopt(rows)
	return s.keep.do(ctx, "adopt tasks", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	})
}

func (d dialect) adopt(rows []row.Ref) (string, []any) {
	refs := sortedByID(rows)
	earliest := row.MinTime.String()
	b := newBatch(d, idsOf(refs))
	b.sets = append(b.sets, clause{
		"due_time = CASE WHEN expected_time >= ? THEN expected_time ELSE " + d.now + " END", []any{earliest},
	})
	b.setNow("update_time")
	b.guard("version = %s", b.each("version", "?", versionsOf(refs)))
	b.guards = append(b.guards,
		clause{sql: fmt.Sprintf("status = %d", row.Pending)},
		clause{"(due_time IS NULL OR due_time < ?)", []any{earliest}},
	)
	return b.statement()
}

// Discard implements [store.Leaser].
func (s *Store) Discard(ctx context.Context, broken []row.Broken) error {
	if len(broken) == 0 {
		return nil
	}
	query, args := s.own.discard(broken)
	return s.keep.do(ctx, "set aside tasks that cannot be decoded", func(ctx context.Context, conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, query, args...)
		return err
	})
}

// discard sets a version that is used up to one that is not, else the row could not be read afterwards either.
func (d dialect) discard(broken []row.Broken) (string, []any) {
	broken = slices.SortedFunc(slices.Values(broken), func(a, b row.Broken) int { return cmp.Compare(a.ID, b.ID) })
	ids := make([]int64, len(broken))
	versions := make([]any, len(broken))
	statuses := make([]any, len(broken))
	reasons := make([]any, len(broken))
	for i, r := range broken {
		ids[i], versions[i], statuses[i], reasons[i] = r.ID, r.Version, int64(r.Status), r.Reason
	}
	b := newBatch(d, ids)
	b.sets = append(b.sets, clause{sql: fmt.Sprintf("status = %d, version = CASE WHEN version < %d THEN version + 1 ELSE %d END",
		row.Failed, usedUp, usedUp/2)})
	b.setEach("error_stack", d.bindText, reasons)
	b.setNow("finish_time")
	b.setNow("due_time")
	b.setNow("update_time")
	b.guard(fmt.Sprintf("CASE WHEN version < %[1]d THEN version ELSE %[1]d END = %%s", math.MaxInt64),
		b.each("version", "?", versions))
	b.guard("status = %s", b.each("status", "?", statuses))
	return b.statement()
}

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
