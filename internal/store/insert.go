package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// maxInsert bounds the rows of one INSERT: 13 parameters each must stay below SQLite's limit of 32,766.
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
		return classify(op, s.insert(ctx, tx, rows))
	case len(rows) <= maxInsert:
		return via.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error { return s.insert(ctx, conn, rows) })
	default:
		return via.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			tx, err := conn.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() // does nothing after the commit
			if err := s.insert(ctx, tx, rows); err != nil {
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

func (s *Store) insert(ctx context.Context, to execer, rows []row.Row) error {
	for len(rows) > 0 {
		n := min(len(rows), maxInsert)
		query, args := s.dialect.insert(rows[:n])
		if _, err := to.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (d dialect) insert(rows []row.Row) (string, []any) {
	columns := []struct {
		name, bind string
		value      func(*row.Row) any
	}{
		{"id", "?", func(r *row.Row) any { return r.ID }},
		{"tag", d.bindText, func(r *row.Row) any { return r.Tag }},
		{"task_key", d.bindText, func(r *row.Row) any { return orNull(r.Key) }},
		{"message_body", d.bindText, func(r *row.Row) any { return string(r.Body) }},
		{"max_attempts", "?", func(r *row.Row) any { return orNull(int64(r.MaxAttempts)) }},
		{"ttr", "?", func(r *row.Row) any { return r.TTR.Milliseconds() }},
		{"priority", "?", func(r *row.Row) any { return r.Priority }},
		{"headers", d.bindJSON, func(r *row.Row) any { return textOrNull(r.Headers) }},
		{"max_late_ms", "?", func(r *row.Row) any { return r.MaxLate.Milliseconds() }},
		{"late_policy", "?", func(r *row.Row) any { return int64(r.LatePolicy) }},
		{"delay_time", "?", func(r *row.Row) any { return r.Delay.Milliseconds() }},
		{"expected_time", "?", func(r *row.Row) any { return r.Expected }},
		{"due_time", "?", func(r *row.Row) any { return r.Due }},
		{"create_time", d.now, nil},
		{"update_time", d.now, nil},
	}
	names := make([]string, len(columns))
	binds := make([]string, len(columns))
	for i, c := range columns {
		names[i], binds[i] = c.name, c.bind
	}
	args := make([]any, 0, len(rows)*len(columns))
	for i := range rows {
		for _, c := range columns {
			if c.value != nil {
				args = append(args, c.value(&rows[i]))
			}
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES " +
		marks(len(rows), "("+strings.Join(binds, ", ")+")"), args
}

// orNull returns nil for the zero value, which is stored as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func timeOrNull(t row.Time) any { return orNull(t.String()) }
