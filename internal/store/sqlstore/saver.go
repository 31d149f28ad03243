package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// maxInsert bounds the rows of one INSERT: up to six parameters each must stay far below SQLite's limit of 32,766.
const maxInsert = 2000

// Insert implements [store.Saver]. More rows than one statement takes go in a transaction, so that all are stored or
// none. In a caller's transaction the caller has to roll back.
func (s *Store) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
	const op = "store tasks"
	via := s.saveLane(ctx, rows)
	switch {
	case len(rows) == 0:
		return nil
	case tx != nil:
		ctx, cancel := withDeadline(ctx)
		defer cancel()
		if err := s.file.check(ctx, tx); err != nil {
			return err
		}
		for some := range slices.Chunk(rows, maxInsert) {
			query := s.dialect.insert(some)
			if _, err := tx.ExecContext(ctx, query.sql, query.args...); err != nil {
				return classify(op, err)
			}
		}
		return nil
	case len(rows) <= maxInsert:
		return via.write(ctx, op, s.own.insert(rows))
	default:
		var steps []step
		for some := range slices.Chunk(rows, maxInsert) {
			steps = append(steps, step{s.own.insert(some), anyRows})
		}
		return via.do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			_, err := s.own.transact(ctx, conn, op, steps)
			return err
		})
	}
}

// saveLane separates rows that may wait for another transaction, because they have a key, from those that cannot. A
// lane of package save with keys has rows with ids of callers as well: these may be refused, but wait for no lock.
func (s *Store) saveLane(ctx context.Context, rows []row.Row) *lane {
	if slices.ContainsFunc(rows, func(r row.Row) bool { return r.Key != "" }) {
		return s.lane(ctx, keyedSaves)
	}
	return s.lane(ctx, saves)
}

// insertColumns leaves out columns whose default is what all rows want. Where the dialect selects from the values, once
// has what serves all rows.
func (d dialect) insertColumns(rows []row.Row) (each, once []*column[row.Row]) {
	each, once = make([]*column[row.Row], 0, len(savedColumns)), make([]*column[row.Row], 0, len(savedColumns))
	for i := range savedColumns {
		c := &savedColumns[i]
		switch {
		case c.save == whereSet && every(rows, c.unset):
		case d.secondValue == "" && isComputed(c, rows):
		case d.secondValue != "" && isShared(c, rows):
			once = append(once, c)
		default:
			each = append(each, c)
		}
	}
	return each, once
}

func isShared(c *column[row.Row], rows []row.Row) bool {
	switch c.save {
	case shared, whereSet:
		return c.same != nil && every(rows, func(r *row.Row) bool { return c.same(r, &rows[0]) })
	default:
		return isComputed(c, rows)
	}
}

// isComputed reports whether a column has the time of the INSERT, or in all rows what expected_time has.
func isComputed(c *column[row.Row], rows []row.Row) bool {
	return c.save == atNow ||
		c.save == asExpected && every(rows, func(r *row.Row) bool { return r.Due == r.Expected })
}

func every(rows []row.Row, is func(*row.Row) bool) bool {
	for i := range rows {
		if !is(&rows[i]) {
			return false
		}
	}
	return true
}

func (d dialect) insert(rows []row.Row) clause {
	each, once := d.insertColumns(rows)
	var t text
	t.grow((len(rows)+1)*insertBytes, len(rows)*insertArgs)
	t.write("INSERT INTO " + table + " (")
	for i, c := range slices.Concat(each, once) {
		t.comma(i)
		t.write(c.name)
	}
	t.write(") ")
	marks := make([]string, len(each))
	for i, c := range each {
		marks[i] = c.mark(&d)
	}
	if len(once) > 0 {
		t.write("SELECT *")
		for _, c := range once {
			t.write(", ")
			if c.save == asExpected {
				t.write(d.secondValue)
			} else {
				put(&t, c, c.mark(&d), &rows[0])
			}
		}
		t.write(" FROM (")
	}
	t.write("VALUES ")
	for i := range rows {
		t.comma(i)
		t.write("(")
		for n, c := range each {
			t.comma(n)
			put(&t, c, marks[n], &rows[i])
		}
		t.write(")")
	}
	if len(once) > 0 {
		t.write(")")
	}
	return clause{t.sql.String(), t.args}
}

func put(t *text, c *column[row.Row], mark string, r *row.Row) {
	switch {
	case c.save == atNow:
		t.write(mark)
	case c.write != nil:
		c.write(t, r)
	default:
		t.value(mark, c.value(r))
	}
}

// The parts of an INSERT of a row without options.
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
	if err := s.file.check(ctx, s.from(tx)); err != nil {
		return nil, nil, err
	}
	return readTasks(ctx, "read tasks", s.from(tx), s.dialect.rowsByID(s.dialect.taskList(true), ids))
}

// FindActive implements [store.Saver].
func (s *Store) FindActive(ctx context.Context, tx store.Tx, keys []row.TagKey) ([]row.Row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	rows, _, err := readTasks(ctx, "find tasks by key", s.from(tx), s.dialect.findActive(keys))
	return rows, err
}

// LockActive implements [store.Saver]. The refused INSERT has locked the key for sharing. To lock it alone would be a
// deadlock of two transactions that have met it, so the id is read with the same lock, and its row is locked alone.
func (s *Store) LockActive(ctx context.Context, tx store.Tx, key row.TagKey) ([]row.Row, []row.Broken, error) {
	const op = "lock the task with a key"
	ids, err := firsts[int64](ctx, tx, s.dialect.lockActive(key))
	if err != nil || len(ids) == 0 {
		return nil, nil, classify(op, err)
	}
	query := s.dialect.rowsByID(s.dialect.taskList(true), ids)
	if s.dialect.rowLocks {
		query.sql += " FOR UPDATE"
	}
	return readTasks(ctx, op, tx, query)
}

func (d dialect) lockActive(key row.TagKey) clause {
	query := "SELECT id FROM " + table + d.byKey + " WHERE active_key = UNHEX(?)"
	if d.rowLocks {
		query += " LOCK IN SHARE MODE"
	}
	return clause{query, []any{d.activeKey(key)}}
}

func (d dialect) findActive(keys []row.TagKey) clause {
	args := make([]any, len(keys))
	for i, k := range keys {
		args[i] = d.activeKey(k)
	}
	return clause{"SELECT " + d.taskList(true) + " FROM " + table + d.byKey +
		" WHERE active_key IN (" + marks(len(keys), "UNHEX(?)") + ") ORDER BY id", args}
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
