package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// Oldest implements [store.Keeper].
func (s *Store) Oldest(ctx context.Context, status row.Status) (oldest []row.TagCount, err error) {
	query := s.dialect.ended(ctx, clause{s.dialect.oldest, []any{int64(status)}})
	err = read(ctx, s.db, query, tasks, func(f *found[row.Row]) {
		oldest = append(oldest, row.TagCount{Tag: f.row.Tag, Status: status, Oldest: f.row.Due})
	})
	return oldest, classify("read the oldest task of each tag", err)
}

// Lateness implements [store.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	var lateness []row.Lateness
	if perTag <= 0 {
		return nil, nil
	}
	for group := range slices.Chunk(row.Distinct(tags), maxBranches) {
		err := read(ctx, s.db, s.dialect.lateness(group, since, perTag), tasks, func(f *found[row.Row]) {
			if !f.row.Execution.IsZero() && !f.row.Expected.IsZero() {
				lateness = append(lateness, row.Lateness{Tag: f.row.Tag, Late: f.row.Execution.Sub(f.row.Expected)})
			}
		})
		if err != nil {
			return nil, classify("read lateness", err)
		}
	}
	return lateness, nil
}

// lateness reads the newest rows of each tag by the index, whose last column is the finish time when a row is final.
func (d dialect) lateness(tags []string, since row.Time, perTag int) clause {
	branches := make([]clause, len(tags))
	for i, tag := range tags {
		limits := []clause{{"tag = ?" + d.exactTag, []any{tag}}}
		if !since.IsZero() {
			limits = append(limits, clause{"due_time >= ?", []any{since}})
		}
		where := joined(limits, " AND ")
		branches[i] = clause{"SELECT " + d.text("tag") + ", " + d.time("start_time") + ", " +
			d.time("expected_time") + " FROM " + table + d.byDue +
			fmt.Sprintf(" WHERE status = %d AND ", row.Completed) + where.sql +
			" AND execution_time IS NOT NULL ORDER BY due_time DESC, id DESC LIMIT " + fmt.Sprint(perTag), where.args}
	}
	return unionAll(branches)
}

// Renumber implements [store.Keeper]. An id that AUTO_INCREMENT made beyond the last one may exceed an int64.
func (s *Store) Renumber(
	ctx context.Context, last int64, next func() int64, limit int,
) (moved int, mend string, err error) {
	const op = "give tasks other ids"
	ids, err := firsts[string](ctx, s.db, s.dialect.misnumbered(last, limit))
	if err != nil || len(ids) == 0 {
		return 0, "", classify(op, err)
	}
	err = s.lanes[chores].do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
		for _, id := range ids {
			n, err := execute(ctx, conn, s.own.renumber(id, next()))
			if err != nil {
				return err
			}
			moved += n
		}
		return nil
	})
	return moved, s.dialect.countOn, err
}

// misnumbered reads both ends in branches of their own: SQLite would read everything for one range or the other.
func (d dialect) misnumbered(last int64, limit int) clause {
	const branch = "SELECT id FROM %s%s WHERE %s AND status <> %d ORDER BY id LIMIT %d"
	var ends []clause
	for _, end := range []string{"id < 1", fmt.Sprint("id > ", last)} {
		ends = append(ends, clause{sql: fmt.Sprintf(branch, table, d.byID, end, row.Executing, limit)})
	}
	return unionAll(ends)
}

func (d dialect) renumber(id string, to int64) clause {
	guard := fmt.Sprintf("t.id = %s AND status <> %d", id, row.Executing)
	return clause{sql: fmt.Sprintf(d.updateListed, fmt.Sprintf("id = %d", to), guard)}
}
