package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// maxInsert bounds the rows of one INSERT: up to six parameters each must stay far below SQLite's limit of 32,766.
const maxInsert = 2000

// Insert implements [store.Saver]. More rows than one statement takes go in a transaction, so that all are stored or
// none. In a caller's transaction the caller has to roll back.
func (s *Store) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
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
		query, args := s.own.insert(rows)
		_, err := via.execute(ctx, op, query, args)
		return err
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

// saveLane separates rows that may wait for another transaction, because they have a key, from those that cannot. A
// lane of package save with keys has rows with ids of callers as well: these may be refused, but wait for no lock.
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
	unset func(*row.Row) bool          // the table's default is what is wanted; nil: never
	alike func(r, first *row.Row) bool // one expression serves both rows; nil: never
	as    string                       // that expression, when write does not make it of the first row
}

// insertColumns leaves out columns that no row sets, because each costs something for every row. Where the dialect
// selects from the values, an expression that serves all rows is written once.
func (d dialect) insertColumns(rows []row.Row) (each, once []inserted) {
	all := []inserted{
		{name: "id", write: func(t *text, r *row.Row) { t.number(r.ID) }},
		{name: "expected_time", write: func(t *text, r *row.Row) { t.moment(r.Expected) }}, // second: see secondValue
		{name: "tag", write: func(t *text, r *row.Row) { t.bind(d.bindText, r.Tag) },
			alike: func(r, first *row.Row) bool { return r.Tag == first.Tag }},
		{name: "task_key", write: func(t *text, r *row.Row) { t.value(d.bindText, orNull(r.Key)) },
			unset: func(r *row.Row) bool { return r.Key == "" }},
		{name: "message_body", write: func(t *text, r *row.Row) { t.bind(d.bindText, string(r.Body)) }},
		{name: "max_attempts", write: func(t *text, r *row.Row) { t.value("", orNull(int64(r.MaxAttempts))) },
			alike: func(r, first *row.Row) bool { return r.MaxAttempts == first.MaxAttempts }},
		{name: "ttr", write: func(t *text, r *row.Row) { t.number(r.TTR.Milliseconds()) },
			alike: func(r, first *row.Row) bool { return r.TTR == first.TTR }},
		{name: "priority", write: func(t *text, r *row.Row) { t.number(int64(r.Priority)) },
			alike: func(r, first *row.Row) bool { return r.Priority == first.Priority }},
		{name: "headers", write: func(t *text, r *row.Row) { t.value(d.bindJSON, textOrNull(r.Headers)) },
			unset: func(r *row.Row) bool { return r.Headers == nil }},
		{name: "max_late_ms", write: func(t *text, r *row.Row) { t.number(r.MaxLate.Milliseconds()) },
			unset: func(r *row.Row) bool { return r.MaxLate == 0 }},
		{name: "late_policy", write: func(t *text, r *row.Row) { t.number(int64(r.LatePolicy)) },
			unset: func(r *row.Row) bool { return r.LatePolicy == row.LateRun }},
		{name: "delay_time", write: func(t *text, r *row.Row) { t.number(r.Delay.Milliseconds()) },
			alike: func(r, first *row.Row) bool { return r.Delay == first.Delay }},
		{name: "due_time", write: func(t *text, r *row.Row) { t.moment(r.Due) },
			alike: func(r, _ *row.Row) bool { return r.Due == r.Expected }, as: d.secondValue},
		{name: "create_time", write: func(t *text, _ *row.Row) { t.write(d.now) }, alike: always},
		{name: "update_time", write: func(t *text, _ *row.Row) { t.write(d.now) }, alike: always},
	}
	if !every(rows, ofNoSchedule) {
		all = append(all, d.tickColumns()...)
	}
	for _, c := range all {
		switch {
		case c.unset != nil && every(rows, c.unset):
		case d.secondValue != "" && c.alike != nil &&
			every(rows, func(r *row.Row) bool { return c.alike(r, &rows[0]) }):
			once = append(once, c)
		default:
			each = append(each, c)
		}
	}
	return each, once
}

// tickColumns fills the columns of the runs of schedules.
func (d dialect) tickColumns() []inserted {
	column := func(name, bind string, value func(*row.TickOf) any) inserted {
		return inserted{name: name, write: func(t *text, r *row.Row) {
			if ofNoSchedule(r) {
				t.write("NULL")
				return
			}
			t.value(bind, value(r.TickOf))
		}}
	}
	return []inserted{
		column("schedule", d.bindText, func(of *row.TickOf) any { return of.Schedule }),
		column("tick", "", func(of *row.TickOf) any { return of.Tick }),
		column("cause", "", func(of *row.TickOf) any { return int64(of.Cause) }),
		column("retry_before", "", func(of *row.TickOf) any { return momentOrNull(of.RetryBefore) }),
		column("tick_context", d.bindText, func(of *row.TickOf) any { return string(of.Context()) }),
	}
}

func ofNoSchedule(r *row.Row) bool { return r.TickOf == nil }

func always(_, _ *row.Row) bool { return true }

func every(rows []row.Row, is func(*row.Row) bool) bool {
	for i := range rows {
		if !is(&rows[i]) {
			return false
		}
	}
	return true
}

func (d dialect) insert(rows []row.Row) (string, []any) {
	each, once := d.insertColumns(rows)
	names := make([]string, 0, len(each)+len(once))
	for _, c := range slices.Concat(each, once) {
		names = append(names, c.name)
	}
	var t text
	t.grow((len(rows)+1)*insertBytes, len(rows)*insertArgs)
	t.write("INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") ")
	if len(once) > 0 {
		t.write("SELECT *")
		for _, c := range once {
			t.write(", ")
			if c.as != "" {
				t.write(c.as)
			} else {
				c.write(&t, &rows[0])
			}
		}
		t.write(" FROM (")
	}
	t.write("VALUES ")
	for i := range rows {
		if i > 0 {
			t.write(", ")
		}
		t.write("(")
		for n, c := range each {
			if n > 0 {
				t.write(", ")
			}
			c.write(&t, &rows[i])
		}
		t.write(")")
	}
	if len(once) > 0 {
		t.write(")")
	}
	return t.sql.String(), t.args
}

// What a row without options needs in an INSERT.
const (
	insertBytes = 200
	insertArgs  = 2
)

// InTransaction implements [store.Saver].
func (s *Store) InTransaction(ctx context.Context, tx store.Tx) (bool, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	inside, err := s.dialect.inTransaction(ctx, tx)
	err = notSent("look whether a transaction is open", err)
	if e, ok := errors.AsType[*row.Error](err); ok && e.Hint == "" {
		e.Hint = "a *sql.Tx is taken without this question"
	}
	return inside, err
}

// Get implements [store.Saver].
func (s *Store) Get(ctx context.Context, tx store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var found page
	err := scan(ctx, s.from(tx), s.dialect.rowsByID(s.dialect.selectList(true), ids), nil, found.add)
	return found.rows, found.broken, classify("read tasks", err)
}

// FindActive implements [store.Saver].
func (s *Store) FindActive(ctx context.Context, tx store.Tx, keys []row.TagKey) ([]row.Row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var found page
	query, args := s.dialect.findActive(keys)
	err := scan(ctx, s.from(tx), query, args, found.add)
	return found.rows, classify("find tasks by key", err)
}

// LockActive implements [store.Saver]. The refused INSERT has locked the key for sharing. To lock it alone would be a
// deadlock of two transactions that have met it, so the id is read with the same lock, and its row is locked alone.
func (s *Store) LockActive(ctx context.Context, tx store.Tx, key row.TagKey) ([]row.Row, []row.Broken, error) {
	const op = "lock the task with a key"
	query, args := s.dialect.lockActive(key)
	ids, err := selectIDs(ctx, tx, query, args...)
	if err != nil || len(ids) == 0 {
		return nil, nil, classify(op, err)
	}
	query = s.dialect.rowsByID(s.dialect.selectList(true), ids)
	if s.dialect.rowLocks {
		query += " FOR UPDATE"
	}
	var found page
	err = scan(ctx, tx, query, nil, found.add)
	return found.rows, found.broken, classify(op, err)
}

func (d dialect) lockActive(key row.TagKey) (string, []any) {
	query := "SELECT id FROM " + table + d.byKey + " WHERE active_key = UNHEX(?)"
	if d.rowLocks {
		query += " LOCK IN SHARE MODE"
	}
	return query, []any{d.activeKey(key)}
}

func (d dialect) findActive(keys []row.TagKey) (string, []any) {
	args := make([]any, len(keys))
	for i, k := range keys {
		args[i] = d.activeKey(k)
	}
	return "SELECT " + d.selectList(true) + " FROM " + table + d.byKey +
		" WHERE active_key IN (" + marks(len(keys), "UNHEX(?)") + ") ORDER BY id", args
}

// activeKey returns the column active_key, as the server computes it, in hexadecimal.
func (d dialect) activeKey(k row.TagKey) string {
	k = k.Scope()
	plain := []byte(k.Tag + "\x00" + k.Key)
	if !d.hashesKeys {
		return hex.EncodeToString(plain)
	}
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}
