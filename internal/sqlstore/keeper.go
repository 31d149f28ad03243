package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
		// True for every row, but it lets the index (status, tag, due_time) find the tag.
		and(fmt.Sprintf("status IN (%d, %d, %d, %d, %d)",
			row.Pending, row.Completed, row.Failed, row.Executing, row.Cancelled))
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

// Oldest implements [store.Keeper].
func (s *Store) Oldest(ctx context.Context, status row.Status) (oldest []row.TagCount, err error) {
	err = scan(ctx, s.db, s.dialect.oldest, []any{int64(status)}, func(r *record) error {
		due := r.due()
		oldest = append(oldest, row.TagCount{Tag: due.Tag, Status: status, Oldest: due.Due})
		return nil
	})
	return oldest, classify("read the oldest task of each tag", err)
}

// Counts implements [store.Keeper]. Where the index counts tags as one that differ only in spaces at their ends, Counts
// counts once more, without its order.
func (s *Store) Counts(ctx context.Context) ([]row.TagCount, error) {
	counts, alike, err := s.count(ctx, table+".tag")
	if alike && err == nil {
		counts, _, err = s.count(ctx, fmt.Sprintf(s.dialect.readText, table+".tag"))
	}
	return counts, classify("count tasks", err)
}

func (s *Store) count(ctx context.Context, by string) (counts []row.TagCount, alike bool, err error) {
	err = scan(ctx, s.db, s.dialect.counts(by), nil, func(r *struct {
		record
		N     int64 `db:"n"`
		Alike bool  `db:"alike"` // rows of several tags
	}) error {
		state := r.state()
		counts = append(counts, row.TagCount{Tag: string(r.Tag), Status: state.Status, Count: r.N, Oldest: state.Due})
		alike = alike || r.Alike
		return nil
	})
	return counts, alike, err
}

func (d dialect) counts(by string) string {
	return "SELECT status, " + d.text("tag") + ", COUNT(*) AS n, MIN(LENGTH(tag)) < MAX(LENGTH(tag)) AS alike," +
		" CAST(MIN(due_time) AS CHAR) AS due_time FROM " + table + d.byDue + " GROUP BY status, " + by
}

// Lateness implements [store.Keeper].
func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	var found []row.Lateness
	if perTag <= 0 {
		return nil, nil
	}
	for group := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(tags))), maxBranches) {
		query, args := s.dialect.lateness(group, since, perTag)
		err := scan(ctx, s.db, query, args, func(r *record) error {
			var d decoder
			started, expected := d.time("execution_time", r.Execution), d.time("expected_time", r.Expected)
			if !started.IsZero() && !expected.IsZero() {
				found = append(found, row.Lateness{Tag: string(r.Tag), Late: started.Sub(expected)})
			}
			return nil
		})
		if err != nil {
			return nil, classify("read lateness", err)
		}
	}
	return found, nil
}

// lateness reads the newest rows of each tag by the index, whose last column is the finish time when a row is final.
func (d dialect) lateness(tags []string, since row.Time, perTag int) (string, []any) {
	branches := make([]clause, len(tags))
	for i, tag := range tags {
		limits := []clause{{"tag = ?" + d.exactTag, []any{tag}}}
		if !since.IsZero() {
			limits = append(limits, clause{"due_time >= ?", []any{since}})
		}
		where := joined(limits, " AND ")
		branches[i] = clause{"SELECT " + d.text("tag") + ", " + d.time("execution_time") + ", " +
			d.time("expected_time") + " FROM " + table + d.byDue +
			fmt.Sprintf(" WHERE status = %d AND ", row.Completed) + where.sql +
			" AND execution_time IS NOT NULL ORDER BY due_time DESC, id DESC LIMIT " + fmt.Sprint(perTag), where.args}
	}
	all := unionAll(branches)
	return all.sql, all.args
}

var errNotFinal = errors.New("only tasks of a final status can be purged")

// Purge implements [store.Keeper]. It finds rows tag by tag, because the index is ordered by due time only within a
// tag.
func (s *Store) Purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	const op = "purge tasks"
	if !status.Final() {
		return 0, refusedTo(op, errNotFinal)
	}
	if limit <= 0 {
		return 0, nil
	}
	ids, err := s.purgeable(ctx, status, before, limit)
	if err != nil || len(ids) == 0 {
		return 0, classify(op, err)
	}
	query, args := s.dialect.purge(status, before, ids)
	return s.keep.execute(ctx, op, query, args)
}

func (s *Store) purgeable(ctx context.Context, status row.Status, before row.Time, limit int) ([]int64, error) {
	oldest, err := s.Oldest(ctx, status)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, of := range oldest {
		if of.Oldest >= before {
			continue
		}
		query, args := s.dialect.purgeable(status, of.Tag, before, limit-len(ids))
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
	return "SELECT id FROM " + table + d.byDue +
			" WHERE status = ? AND tag = ? AND due_time < ? ORDER BY due_time, id LIMIT ?",
		[]any{int64(status), tag, before, limit}
}

func (d dialect) purge(status row.Status, before row.Time, ids []int64) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, table) + " WHERE t.id IN (" + idList(ids) + ") AND status = ? AND due_time < ?",
		[]any{int64(status), before}
}

// Renumber implements [store.Keeper]. An id that AUTO_INCREMENT made beyond the last one may exceed an int64.
func (s *Store) Renumber(
	ctx context.Context, last int64, next func() int64, limit int,
) (moved int, mend string, err error) {
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

// misnumbered reads both ends in branches of their own: SQLite would read everything for one range or the other.
func (d dialect) misnumbered(last int64, limit int) string {
	const branch = "SELECT id FROM %s%s WHERE %s AND status <> %d ORDER BY id LIMIT %d"
	var ends []clause
	for _, end := range []string{"id < 1", fmt.Sprint("id > ", last)} {
		ends = append(ends, clause{sql: fmt.Sprintf(branch, table, d.byID, end, row.Executing, limit)})
	}
	return unionAll(ends).sql
}

func (d dialect) renumber(id string, to int64) string {
	guard := fmt.Sprintf("t.id = %s AND status <> %d", id, row.Executing)
	return fmt.Sprintf(d.updateListed, fmt.Sprintf("id = %d", to), guard)
}
