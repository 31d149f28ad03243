package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
)

// CountDue implements [store.Forecaster]. A server counts whole cells.
func (s *Store) CountDue(ctx context.Context, g row.DueGrid, most int, limit time.Duration) (
	counts []row.DueCount, complete bool, err error) {
	if len(g.Tags) == 0 || len(g.Cells()) == 0 {
		return nil, true, nil
	}
	timed := ctx
	if !s.dialect.limits {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	query := s.dialect.countDue(s.dialect, g, most)
	if s.dialect.limits {
		query = endedAfter(limit, query)
	}
	var c row.DueCount
	err = scan(timed, s.db, query, func() {
		if c.Rows > 0 && g.Has(c.Cell) {
			c.More = s.dialect.capsCells && c.Rows > int64(most)
			counts = append(counts, c)
		}
	}, &c.Tag, &c.Cell, &c.Rows)
	if err != nil && ctx.Err() == nil && (timed.Err() != nil || outOfTime(err)) {
		return nil, false, nil
	}
	return counts, err == nil, classify("count due tasks", err)
}

// outOfTime reports whether a server has ended the statement at the limit that it names.
func outOfTime(err error) bool {
	const onMariaDB, onMySQL = 1969, 3024
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == onMariaDB || e.Number == onMySQL)
}

// mysqlCountDue groups in one pass over the index: a query for each cell would cost more than the rows of most.
func mysqlCountDue(d dialect, g row.DueGrid, _ int) clause {
	var t text
	t.write("SELECT " + d.text("tag") + ", ")
	if g.Steps == 0 {
		t.number(row.OverdueCell)
	} else {
		t.write("CASE WHEN due_time < ")
		t.moment(g.Now)
		t.write(fmt.Sprintf(" THEN %d ELSE TIMESTAMPDIFF(MICROSECOND, ", row.OverdueCell))
		t.moment(g.Start)
		t.write(fmt.Sprintf(", due_time) DIV %d END", g.Step.Microseconds()))
	}
	t.write(" AS cell, COUNT(*) AS n FROM " + table + d.byDue)
	t.write(fmt.Sprintf(" WHERE status = %d AND tag IN (", row.Pending))
	t.write(marks(len(g.Tags), "?") + ")" + d.exactTag + " AND due_time >= ")
	t.moment(row.MinTime)
	t.write(" AND due_time < ")
	t.moment(g.End())
	t.write(" GROUP BY " + table + ".tag, 2 ORDER BY NULL")
	return clause{t.sql.String(), anys(g.Tags)}
}

// sqliteCountDue counts each cell by itself, so that a large one costs no more than the bound.
func sqliteCountDue(d dialect, g row.DueGrid, most int) clause {
	var t text
	t.write("SELECT asked.column1 AS tag, cells.column1 AS cell, (SELECT COUNT(*) FROM (SELECT 1 FROM ")
	t.write(table + d.byDue)
	t.write(fmt.Sprintf(" WHERE status = %d AND tag = asked.column1 AND due_time >= cells.column2"+
		" AND due_time < cells.column3 LIMIT %d)) AS n", row.Pending, most+1))
	t.write(" FROM (VALUES " + marks(len(g.Tags), "("+d.bindText+")") + ") AS asked, (VALUES ")
	for i, c := range g.Cells() {
		t.comma(i)
		t.write("(")
		t.number(int64(c.Cell))
		t.write(", ")
		t.moment(c.From)
		t.write(", ")
		t.moment(c.To)
		t.write(")")
	}
	t.write(") AS cells")
	return clause{t.sql.String(), anys(g.Tags)}
}

// EstimateDue implements [store.Forecaster]. SQLite cannot tell how many entries are in a range of an index.
func (s *Store) EstimateDue(ctx context.Context, g row.DueGrid) (counts []row.DueCount, known bool, err error) {
	if len(g.Tags) == 0 || !s.dialect.estimates {
		return nil, s.dialect.estimates, nil
	}
	query := s.dialect.estimateDue(g)
	branches, err := readTexts(ctx, s.db, "EXPLAIN FORMAT=TRADITIONAL "+query.sql, query.args...)
	if err != nil {
		return nil, false, classify("estimate due tasks", err)
	}
	cells := g.Cells()
	found := make([]int64, len(g.Tags)*len(cells)+1) // the last one is the table as a whole
	all := &found[len(found)-1]
	for _, branch := range branches {
		rows, ok := branch["rows"]
		if !ok { // TiDB explains in another form
			return nil, false, nil
		}
		if id := decimal(branch["id"]); id > 0 && id <= int64(len(found)) {
			found[id-1] = decimal(rows) // a branch that need not be read has none
		}
	}
	for i, n := range found[:len(found)-1] {
		if n > 1 { // a server says "one" for none
			tag, cell := g.Tags[i/len(cells)], cells[i%len(cells)].Cell
			counts = append(counts, row.DueCount{Tag: tag, Cell: cell, Rows: withoutDoubling(n, tag, *all)})
		}
	}
	return counts, true, nil
}

// withoutDoubling returns what InnoDB has found. It counts what is on ten pages or less. Of a larger range it reads
// some pages, doubles what follows of them, and tells half of the table at most. Pages are at least half full, so what
// ten full pages hold divides the two.
func withoutDoubling(estimate int64, tag string, all int64) int64 {
	const page, entry = 16_000, 24 // bytes, an entry without its tag
	if estimate > 10*page/int64(entry+len(tag)) && estimate < all/2 {
		return estimate / 2
	}
	return estimate
}

// estimateDue has a branch for each cell, tag by tag, and one for the whole table. A server numbers them from 1 on. It
// is explained only. With FORCE in place of USE, MySQL does not look into the index.
func (d dialect) estimateDue(g row.DueGrid) clause {
	const entries = "SELECT 1 FROM " + table + " USE INDEX (" + dueKey + ")"
	var t text
	t.grow(len(g.Tags)*(g.Steps+1)*200, len(g.Tags)*(g.Steps+1))
	cells := g.Cells()
	for _, tag := range g.Tags {
		for _, c := range cells {
			t.write(entries + fmt.Sprintf(" WHERE status = %d AND tag = ", row.Pending))
			t.bind("?", tag)
			t.write(" AND due_time >= ")
			t.moment(c.From)
			t.write(" AND due_time < ")
			t.moment(c.To)
			t.write(" UNION ALL ")
		}
	}
	t.write(entries)
	return clause{t.sql.String(), t.args}
}

// Upcoming implements [store.Forecaster]. A schedule is looked at before its cursor is due, so the index of looks finds
// it.
func (s *Store) Upcoming(ctx context.Context, before row.Time, limit int) (cursors []row.Schedule, err error) {
	err = read(ctx, s.db, s.dialect.upcoming(before, limit), schedules, func(f *found[row.Schedule]) {
		if f.err == nil {
			cursors = append(cursors, f.row)
		}
	})
	return cursors, classify("read the cursors of schedules", err)
}

func (d dialect) upcoming(before row.Time, limit int) clause {
	columns := schedules.list(d, "", "name", "tag", "spec", "jitter", "max_runs", "runs", "next_time", "last_time")
	return clause{"SELECT t.id, " + columns + " FROM " + scheduleTable + " AS t" + fmt.Sprintf(d.by, lookKey) +
		fmt.Sprintf(" WHERE t.look_time <= ? AND t.state = %d", row.ScheduleActive) + " AND t.next_time < ?" +
		" ORDER BY t.look_time, t.id LIMIT " + fmt.Sprint(max(limit, 0)), []any{before, before}}
}
