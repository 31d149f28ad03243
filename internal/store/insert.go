package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// maxInsert bounds the rows of one INSERT: up to four parameters each must stay far below SQLite's limit of 32,766.
const maxInsert = 2000

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Insert implements [engine.Saver]. More rows than one statement takes go in a transaction, so that still all are stored or none;
// in a caller's transaction that is for the caller to see to, by rolling back.
func (s *Store) Insert(ctx context.Context, tx engine.Tx, rows []row.Row) error {
	const op = "store tasks"
	via := s.saveLane(rows)
	switch {
	case len(rows) == 0:
		return nil
	case tx != nil:
		ctx, cancel := withDeadline(ctx)
		defer cancel()
		return classify(op, insertAll(ctx, tx, s.dialect, rows))
	case len(rows) <= maxInsert:
		return via.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error { return insertAll(ctx, conn, s.own, rows) })
	default:
		return via.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			tx, err := conn.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() // does nothing after the commit
			if err := insertAll(ctx, tx, s.own, rows); err != nil {
				return err
			}
			return tx.Commit()
		})
	}
}

// saveLane keeps rows that somebody's open transaction can keep waiting away from those that wait for nobody.
func (s *Store) saveLane(rows []row.Row) *lane {
	if slices.ContainsFunc(rows, func(r row.Row) bool { return r.Key != "" }) {
		return s.saveKeyed
	}
	return s.save
}

func insertAll(ctx context.Context, to execer, d dialect, rows []row.Row) error {
	for len(rows) > 0 {
		n := min(len(rows), maxInsert)
		query, args := d.insert(rows[:n])
		if _, err := to.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// inserted is a column that an INSERT fills.
type inserted struct {
	name  string
	write func(*text, *row.Row)
	unset func(*row.Row) bool // the table's default is what is wanted; nil: never
}

// insertColumns leaves out what no row sets: every column costs, for each row.
func (d dialect) insertColumns(rows []row.Row) []inserted {
	columns := []inserted{
		{"id", func(t *text, r *row.Row) { t.number(r.ID) }, nil},
		{"tag", func(t *text, r *row.Row) { t.bind(d.bindText, r.Tag) }, nil},
		{"task_key", func(t *text, r *row.Row) { t.value(d.bindText, orNull(r.Key)) }, func(r *row.Row) bool { return r.Key == "" }},
		{"message_body", func(t *text, r *row.Row) { t.bind(d.bindText, string(r.Body)) }, nil},
		{"max_attempts", func(t *text, r *row.Row) { t.value("", orNull(int64(r.MaxAttempts))) }, nil},
		{"ttr", func(t *text, r *row.Row) { t.number(r.TTR.Milliseconds()) }, nil},
		{"priority", func(t *text, r *row.Row) { t.number(int64(r.Priority)) }, nil},
		{"headers", func(t *text, r *row.Row) { t.value(d.bindJSON, textOrNull(r.Headers)) },
			func(r *row.Row) bool { return r.Headers == nil }},
		{"max_late_ms", func(t *text, r *row.Row) { t.number(r.MaxLate.Milliseconds()) },
			func(r *row.Row) bool { return r.MaxLate == 0 }},
		{"late_policy", func(t *text, r *row.Row) { t.number(int64(r.LatePolicy)) },
			func(r *row.Row) bool { return r.LatePolicy == row.LateRun }},
		{"delay_time", func(t *text, r *row.Row) { t.number(r.Delay.Milliseconds()) }, nil},
		{"expected_time", func(t *text, r *row.Row) { t.moment(r.Expected) }, nil},
		{"due_time", func(t *text, r *row.Row) { t.moment(r.Due) }, nil},
		{"create_time", func(t *text, _ *row.Row) { t.write(d.now) }, nil},
		{"update_time", func(t *text, _ *row.Row) { t.write(d.now) }, nil},
	}
	return slices.DeleteFunc(columns, func(c inserted) bool {
		for i := range rows {
			if c.unset == nil || !c.unset(&rows[i]) {
				return false
			}
		}
		return true
	})
}

func (d dialect) insert(rows []row.Row) (string, []any) {
	columns := d.insertColumns(rows)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	var t text
	t.grow((len(rows)+1)*insertBytes, len(rows)*insertArgs)
	t.write("INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES ")
	for i := range rows {
		if i > 0 {
			t.write(", ")
		}
		t.write("(")
		for n, c := range columns {
			if n > 0 {
				t.write(", ")
			}
			c.write(&t, &rows[i])
		}
		t.write(")")
	}
	return t.sql.String(), t.args
}

// What a row without options takes in an INSERT.
const (
	insertBytes = 200
	insertArgs  = 2
)

// orNull returns nil for the zero value, which is stored as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// momentOrNull is nil for a time that is not set: a value that a batch compares.
func momentOrNull(t row.Time) any { return orNull(t) }

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}
