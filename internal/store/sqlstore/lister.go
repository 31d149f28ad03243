package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/delaytask/delaytask/internal/row"
)

// listBranches is how many ranges one query of a list reads. There are several of each tag, and the bounds of its
// callers hold for all of them together.
const listBranches = 128

// Places implements [store.Lister].
func (s *Store) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	found := make([][]row.Place, len(spans))
	if limit <= 0 {
		return found, nil
	}
	var branches []clause
	for i, span := range spans {
		branches = append(branches, s.dialect.places(i, span, limit)...)
	}
	for group := range slices.Chunk(branches, listBranches) {
		all := unionAll(group)
		var id int64
		var due sql.RawBytes
		var span int
		err := scan(ctx, s.db, all, func() {
			found[span] = append(found[span], row.Place{Due: new(decoder).time("due_time", due), ID: id})
		}, &id, &due, &span)
		if err != nil {
			return nil, classify("list tasks", err)
		}
	}
	for i, span := range spans { // a union keeps no order
		slices.SortFunc(found[i], func(a, b row.Place) int {
			if span.Down {
				a, b = b, a
			}
			return a.Compare(b)
		})
		found[i] = found[i][:min(limit, len(found[i]))]
	}
	return found, nil
}

// places reads a span in ranges. Each range is a part of the index, in its order. One range with OR would read all of
// 200,000 rows with the same due time for a page in their middle.
func (d dialect) places(number int, s row.Span, limit int) []clause {
	var branches []clause
	add := func(order string, limits ...clause) {
		of := clause{"status = ? AND tag = ?" + validID + d.hasPlace, []any{int64(s.Status), s.Tag}}
		if !s.Padded {
			of.sql += d.exactTag
		}
		if s.Down {
			order = downwards[order]
		}
		where := joined(append([]clause{of}, limits...), " AND ")
		branches = append(branches, clause{fmt.Sprintf(
			"SELECT id, %s, %d AS span FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
			d.time("due_time"), number, table, d.byDue, where.sql, order, limit), where.args})
	}
	if s.After == nil {
		add(byDueTime, dueWithin(s.From, s.To)...)
		return branches
	}
	at, open := s.After.Due, s.From.IsZero() && s.To.IsZero()
	unset, same := clause{sql: "due_time IS NULL"}, clause{"due_time = ?", []any{at}}
	beyond := clause{"id > ?", []any{s.After.ID}}
	if s.Down {
		beyond.sql = "id < ?"
	}
	switch {
	case !at.IsZero() && at >= s.From && (s.To.IsZero() || at < s.To):
		add("id", same, beyond)
	case at.IsZero() && open:
		add("id", unset, beyond)
	}
	switch {
	case !s.Down: // the resolution is a microsecond
		add(byDueTime, dueWithin(max(s.From, at+1, row.MinTime), s.To)...)
	case !at.IsZero():
		if !s.To.IsZero() {
			at = min(at, s.To)
		}
		add(byDueTime, dueWithin(max(s.From, row.MinTime), at)...)
		if open {
			add("id", unset)
		}
	}
	return branches
}

// FirstDue implements [store.Lister].
func (s *Store) FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error) {
	first := map[string]row.Time{}
	for _, query := range s.dialect.firstDue(span) {
		err := read(ctx, s.db, query, tasks, func(f *found[row.Row]) {
			at, known := first[f.row.Tag]
			if !known || (f.row.Due < at) != span.Down {
				first[f.row.Tag] = f.row.Due
			}
		})
		if err != nil {
			return nil, classify("find the first task of each tag", err)
		}
	}
	tags := make([]row.TagCount, 0, len(first))
	for tag, at := range first {
		tags = append(tags, row.TagCount{Tag: tag, Status: span.Status, Oldest: at})
	}
	return tags, nil
}

// firstDue reads the rows that have a due time, and beside them those that have none. Downwards nothing that has one
// follows one that has none.
func (d dialect) firstDue(s row.Span) (queries []clause) {
	function, follows := "MIN", "due_time >= ?"
	if s.Down {
		function, follows = "MAX", "due_time <= ?"
	}
	limits := append([]clause{{"status = ?", []any{int64(s.Status)}}}, dueWithin(s.From, s.To)...)
	isUnset := s.After != nil && s.After.Due.IsZero()
	if s.After != nil && !isUnset {
		limits = append(limits, clause{follows, []any{s.After.Due}})
	}
	if !s.Down || !isUnset {
		queries = append(queries, d.eachFirst(function, joined(limits, " AND ")))
	}
	if s.From.IsZero() && s.To.IsZero() && (s.Down || s.After == nil || isUnset) {
		unset := []clause{limits[0], {sql: "due_time IS NULL"}}
		queries = append(queries, d.eachFirst(function, joined(unset, " AND ")))
	}
	return queries
}

// FirstIDs implements [store.Lister].
func (s *Store) FirstIDs(ctx context.Context, span row.Span, due row.Time) (map[string]int64, error) {
	ids := map[string]int64{}
	if span.After != nil && due != span.After.Due && (due > span.After.Due) == span.Down {
		return ids, nil // behind the place is nothing of that time
	}
	var tag string
	var id int64
	err := scan(ctx, s.db, s.dialect.firstIDs(span, due), func() { ids[tag] = id }, &tag, &id)
	return ids, classify("find the first ids of each tag", err)
}

func (d dialect) firstIDs(s row.Span, due row.Time) clause {
	limits := append([]clause{{"status = ?", []any{int64(s.Status)}}}, dueWithin(s.From, s.To)...)
	if due.IsZero() {
		limits = append(limits, clause{sql: "due_time IS NULL"})
	} else {
		limits = append(limits, clause{"due_time = ?", []any{due}})
	}
	function, least, most := "MIN", int64(1), int64(math.MaxInt64)
	if s.Down {
		function = "MAX"
	}
	if s.After != nil && s.After.Due == due {
		if s.Down {
			most = s.After.ID - 1
		} else {
			least = s.After.ID + 1
		}
	}
	limits = append(limits, clause{sql: fmt.Sprintf("id BETWEEN %d AND %d", least, most)})
	return d.eachFirstID(function, joined(limits, " AND "))
}

// validID rules out ids written by hand in the statement itself, because a read that is not full ends a list. Renumber
// gives such rows another id.
var validID = fmt.Sprintf(" AND id BETWEEN 1 AND %d", math.MaxInt64)

func dueWithin(from, to row.Time) (limits []clause) {
	if !from.IsZero() {
		limits = append(limits, clause{"due_time >= ?", []any{from}})
	}
	if !to.IsZero() {
		limits = append(limits, clause{"due_time < ?", []any{to}})
	}
	return limits
}

var downwards = map[string]string{"id": "id DESC", byDueTime: table + ".due_time DESC, id DESC"}

// Newest implements [store.Lister].
func (s *Store) Newest(ctx context.Context, below int64, limit int) ([]int64, error) {
	ids, err := firsts[int64](ctx, s.db, s.dialect.newest(below, limit))
	return ids, classify("list the newest tasks", err)
}

func (d dialect) newest(below int64, limit int) clause {
	return clause{sql: fmt.Sprintf("SELECT id FROM %s%s WHERE id > 0 AND id < %d ORDER BY id DESC LIMIT %d",
		table, d.byID, below, max(limit, 0))}
}

// Match implements [store.Lister].
func (s *Store) Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found := make([]row.Sized, 0, len(ids))
	var r row.Sized
	err := scan(ctx, s.db, s.dialect.match(ids, m, bodies), func() {
		r.Bytes += (&row.Row{}).Size()
		found = append(found, r)
	}, &r.ID, &r.Bytes)
	return found, classify("filter tasks", err)
}

func (d dialect) match(ids []int64, m row.Match, bodies bool) clause {
	limits := []clause{{sql: "id IN (" + idList(ids) + ")"}}
	and := func(condition string, args ...any) { limits = append(limits, clause{condition, args}) }
	if m.Status != nil {
		and("status = ?", int64(*m.Status))
	}
	if m.Tag != "" {
		and(fmt.Sprintf(d.sameText, "tag"), m.Tag)
	}
	if m.Key != "" {
		and(fmt.Sprintf(d.sameText, "task_key"), m.Key)
	}
	if !m.From.IsZero() {
		and("due_time >= ?", m.From)
	}
	if !m.To.IsZero() {
		and("due_time < ?", m.To)
	}
	if !m.CreatedBy.IsZero() {
		and("create_time <= ?", m.CreatedBy)
	}
	if m.LateBy > 0 {
		late := fmt.Sprintf(d.add, "expected_time", strconv.FormatInt(m.LateBy.Milliseconds(), 10))
		at, args := d.now, []any(nil)
		if !m.LateAt.IsZero() {
			at, args = "?", []any{m.LateAt}
		}
		and(fmt.Sprintf("(%s < execution_time OR execution_time IS NULL AND status IN (%d, %d) AND %[1]s < %[4]s)",
			late, row.Pending, row.Executing, at), args...)
	}
	if m.Error != "" {
		and("INSTR("+fmt.Sprintf(d.readText, "error_stack")+", "+d.bindText+") > 0", m.Error)
	}
	size := "0"
	for _, column := range []string{"headers", "error_stack", "errors", "message_body"} {
		if bodies || column != "message_body" {
			size += " + COALESCE(OCTET_LENGTH(" + column + "), 0)"
		}
	}
	where := joined(limits, " AND ")
	return clause{"SELECT id, " + size + " AS bytes FROM " + table + d.byID + " WHERE " + where.sql + " ORDER BY id",
		where.args}
}

// Rows implements [store.Lister].
func (s *Store) Rows(ctx context.Context, ids []int64, bodies bool) ([]row.Row, []row.Broken, error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	return readTasks(ctx, "read tasks", s.db, s.dialect.rowsByID(s.dialect.taskList(bodies), ids))
}

// Failures implements [store.Lister].
func (s *Store) Failures(ctx context.Context, ids []int64) ([]row.Failure, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	failures := make([]row.Failure, 0, len(ids))
	err := read(ctx, s.db, s.dialect.failures(ids), tasks, func(f *found[row.Row]) {
		failures = append(failures, row.Failure{ID: f.row.ID, Tag: f.row.Tag, At: f.row.Due, Error: f.row.ErrorStack})
	})
	return failures, classify("read errors", err)
}

// failures cuts the bytes of a text, within a character too.
func (d dialect) failures(ids []int64) clause {
	cut := fmt.Sprintf("SUBSTR(CAST(error_stack AS %s), 1, %d)", d.bytes, row.FailureSize)
	return d.rowsByID("id, "+d.text("tag")+", "+d.time("due_time")+", "+cut+" AS error_stack", ids)
}

// Count implements [store.Lister].
func (s *Store) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	counts := make([]int64, len(pairs))
	most = min(max(most, 0), math.MaxInt32)
	next := 0
	for group := range slices.Chunk(pairs, listBranches) {
		branches := make([]clause, len(group))
		for i, p := range group {
			branches[i] = s.dialect.count(next+i, p, most)
		}
		all := unionAll(branches)
		var pair int
		var n int64
		err := scan(ctx, s.db, all, func() { counts[pair] = n }, &pair, &n)
		if err != nil {
			return nil, classify("count tasks", err)
		}
		next += len(group)
	}
	return counts, nil
}

func (d dialect) count(number int, p row.Pair, most int) clause {
	return clause{fmt.Sprintf("SELECT %d AS pair, COUNT(*) AS n FROM (SELECT 1 FROM %s%s WHERE status = ? AND tag = ?"+
		" LIMIT %d) AS capped", number, table, d.byDue, most), []any{int64(p.Status), p.Tag}}
}
