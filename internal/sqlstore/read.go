package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// queryer reads: the pool, a connection of a lane, or a caller's transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// from returns what a read runs on: the caller's transaction when there is one.
func (s *Store) from(tx store.Tx) queryer {
	if tx != nil {
		return tx
	}
	return s.db
}

// scan runs a query and hands over its rows one by one. The destination, and what it points to, is valid during the
// call only.
func scan[T any](ctx context.Context, q queryer, query string, args []any, each func(*T) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if pool, ok := q.(*sqlx.DB); ok {
		return onPool(ctx, pool, func(conn *sql.Conn) error { return scan(ctx, conn, query, args, each) })
	}
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	var dest T
	fields, err := fieldsOf(&dest, names)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return err
		}
		if err := each(&dest); err != nil {
			return err
		}
	}
	return rows.Err()
}

var mapper = reflectx.NewMapper("db")

// fieldsOf returns pointers to the fields of a struct that the columns are read into. A pool may be set up to put the
// table's name in front of each column's.
func fieldsOf(dest any, columns []string) ([]any, error) {
	for i, name := range columns {
		columns[i] = name[strings.LastIndexByte(name, '.')+1:]
	}
	v := reflect.ValueOf(dest).Elem()
	fields := make([]any, len(columns))
	for i, path := range mapper.TraversalsByName(v.Type(), columns) {
		if len(path) == 0 {
			return nil, fmt.Errorf("no field for column %s in %s", columns[i], v.Type())
		}
		fields[i] = reflectx.FieldByIndexes(v, path).Addr().Interface()
	}
	return fields, nil
}

// page gathers what a read of whole rows finds, those that cannot be decoded apart from the others.
type page struct {
	rows   []row.Row
	broken []row.Broken
}

func (p *page) add(r *record) error { return p.put(r.row()) }

func (p *page) put(decoded row.Row, err error) error {
	if err != nil {
		p.broken = append(p.broken, row.Broken{
			Ref:    row.Ref{ID: decoded.ID, Version: decoded.Version},
			Status: decoded.Status,
			Reason: "the row cannot be decoded: " + err.Error(),
		})
		return nil
	}
	p.rows = append(p.rows, decoded)
	return nil
}

func statesOf(ctx context.Context, d dialect, q queryer, ids []int64) ([]row.State, error) {
	var states []row.State
	query := "SELECT " + d.stateList() + " FROM " + table + " WHERE id IN (" + idList(ids) + ") ORDER BY id"
	err := scan(ctx, q, query, nil, func(r *record) error {
		states = append(states, r.state())
		return nil
	})
	return states, err
}

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	reading, err := readClock(ctx, s.dialect, s.db)
	return reading, classify("read the database's clock", err)
}

func readClock(ctx context.Context, d dialect, q queryer) (reading row.Reading, err error) {
	err = scan(ctx, q, "SELECT "+d.reading(), nil, func(r *record) (err error) {
		reading, err = r.reading()
		return err
	})
	return reading, err
}

// Get implements [store.Saver].
func (s *Store) Get(ctx context.Context, tx store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	var found page
	query := "SELECT " + s.dialect.selectList(true) + " FROM " + table + " WHERE id IN (" + idList(ids) + ") ORDER BY id"
	err := scan(ctx, s.from(tx), query, nil, found.add)
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

func (d dialect) findActive(keys []row.TagKey) (string, []any) {
	args := make([]any, len(keys))
	for i, k := range keys {
		args[i] = d.activeKey(k)
	}
	return "SELECT " + d.selectList(true) + " FROM " + table + d.byKey +
		" WHERE active_key IN (" + marks(len(keys), "UNHEX(?)") + ") ORDER BY id", args
}

// activeKey computes the column active_key as the server does, in hexadecimal.
func (d dialect) activeKey(k row.TagKey) string {
	k = k.Scope()
	plain := []byte(k.Tag + "\x00" + k.Key)
	if !d.hashesKeys {
		return hex.EncodeToString(plain)
	}
	sum := sha256.Sum256(plain)
	return hex.EncodeToString(sum[:])
}

// States implements [store.Finder].
func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	states, err := statesOf(ctx, s.dialect, s.db, ids)
	return states, classify("read who holds tasks", err)
}

func sortedIDs[T any](items []T, id func(T) int64) []int64 {
	ids := make([]int64, len(items))
	for i, item := range items {
		ids[i] = id(item)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// selectList reads the columns of record. Times are read as text and texts as the bytes that are stored, so that a
// connection's time zone, parseTime and character set change nothing.
func (d dialect) selectList(bodies bool) string {
	body := "NULL AS message_body"
	if bodies {
		body = d.text("message_body")
	}
	return strings.Join([]string{
		d.attemptList(), body, "status", "ip_address", d.text("executor"), "delay_time", d.time("create_time"),
		d.time("update_time"),
	}, ", ")
}

// claimedList leaves out what the claim itself has written and what no attempt needs: a third of what a read-back of
// many rows costs. The clock is read in the row with the lowest id.
func (d dialect) claimedList(lowest int64) string {
	once := func(expression, name string) string {
		return fmt.Sprintf("CASE WHEN id = %d THEN %s END AS %s", lowest, expression, name)
	}
	return strings.Join([]string{
		d.attemptList(), d.text("message_body"), once("CAST("+d.now+" AS CHAR)", "db_time"), once(d.server, "db_server"),
	}, ", ")
}

func (d dialect) attemptList() string {
	return strings.Join([]string{
		"id", d.text("tag"), d.text("task_key"), "version", "attempt", "max_attempts", "crash_count", "ttr", "priority",
		d.text("headers"), "max_late_ms", "late_policy", d.time("expected_time"), d.time("execution_time"),
		d.time("finish_time"), d.time("due_time"), d.text("error_stack"), d.text("errors"),
	}, ", ")
}

func (d dialect) stateList() string {
	return strings.Join([]string{"id", d.text("tag"), "version", "status", d.time("due_time"), d.text("executor")}, ", ")
}

// reading selects the clock and who answered, as db_time and db_server.
func (d dialect) reading() string {
	return "CAST(" + d.now + " AS CHAR) AS db_time, " + d.server + " AS db_server"
}

func (d dialect) text(name string) string { return fmt.Sprintf(d.readText, name) + " AS " + name }

func (d dialect) time(name string) string { return "CAST(" + name + " AS CHAR) AS " + name }
