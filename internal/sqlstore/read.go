package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// queryer is what reads run on: the pool, a connection of a lane, or a caller's transaction.
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

// scan runs a query and calls each for every row. The row, and what it points to, is valid only during that call.
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

// fieldsOf returns pointers to the fields of a struct that the columns are read into. The settings of a pool may put
// the table's name in front of each column's.
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

// page collects what a read of whole rows finds. Rows that cannot be decoded are in broken.
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
			Read:   decoded,
		})
		return nil
	}
	p.rows = append(p.rows, decoded)
	return nil
}

func statesOf(ctx context.Context, d dialect, q queryer, ids []int64) ([]row.State, error) {
	var states []row.State
	err := scan(ctx, q, d.rowsByID(d.stateList(), ids), nil, func(r *record) error {
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

func sortedIDs[T any](items []T, id func(T) int64) []int64 {
	ids := make([]int64, len(items))
	for i, item := range items {
		ids[i] = id(item)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// selectList selects the columns of record. Times are read as text and texts as their stored bytes, so that a
// connection's time zone, parseTime and character set change nothing.
func (d dialect) selectList(bodies bool) string {
	body := "NULL AS message_body"
	if bodies {
		body = d.text("message_body")
	}
	return strings.Join([]string{
		d.attemptList(), body, "status", "ip_address", d.text("executor"), "delay_time", "late_reason",
		d.time("create_time"), d.time("update_time"),
	}, ", ")
}

// claimedList leaves out what the claim has written and what no attempt needs, which saves a third of the cost of
// reading back many rows. The row with the lowest id also reads the clock.
func (d dialect) claimedList(lowest int64) string {
	once := func(expression, name string) string {
		return fmt.Sprintf("CASE WHEN id = %d THEN %s END AS %s", lowest, expression, name)
	}
	return strings.Join([]string{
		d.attemptList(), d.text("message_body"),
		once("CAST("+d.now+" AS CHAR)", "db_time"), once(d.server, "db_server"),
	}, ", ")
}

func (d dialect) attemptList() string {
	return strings.Join([]string{
		"id", d.text("tag"), d.text("task_key"), "version", "attempt", "max_attempts", "crash_count", "ttr", "priority",
		d.text("headers"), "max_late_ms", "late_policy", d.time("expected_time"), d.time("execution_time"),
		d.time("finish_time"), d.time("due_time"), d.text("error_stack"), d.text("errors"),
		d.text("schedule"), d.timeOfRun("tick"), "cause", d.timeOfRun("retry_before"), d.text("tick_context"),
	}, ", ")
}

func (d dialect) stateList() string {
	columns := []string{"id", d.text("tag"), "version", "status", d.time("due_time"), d.text("executor")}
	return strings.Join(columns, ", ")
}

// rowsByID reads the columns of the rows, in the order of their ids. MariaDB 11 would scan a table that it believes to
// be small.
func (d dialect) rowsByID(columns string, ids []int64) string {
	return "SELECT " + columns + " FROM " + table + d.byID + " WHERE id IN (" + idList(ids) + ") ORDER BY id"
}

// reading selects the clock and the server that answers, as db_time and db_server.
func (d dialect) reading() string {
	return "CAST(" + d.now + " AS CHAR) AS db_time, " + d.server + " AS db_server"
}

func (d dialect) text(name string) string { return fmt.Sprintf(d.readText, name) + " AS " + name }

func (d dialect) time(name string) string { return "CAST(" + name + " AS CHAR) AS " + name }

// timeOfRun is time for a column that only runs of schedules have. A server converts NULL, too, and claims read many
// rows of no schedule.
func (d dialect) timeOfRun(name string) string {
	return "CASE WHEN schedule IS NOT NULL THEN CAST(" + name + " AS CHAR) END AS " + name
}

func selectIDs(ctx context.Context, q queryer, query string, args ...any) ([]int64, error) {
	var ids []int64
	err := scan(ctx, q, query, args, func(r *struct {
		ID int64 `db:"id"`
	}) error {
		ids = append(ids, r.ID)
		return nil
	})
	return ids, err
}

// record is a row as the driver returns it: bytes, whatever the column's type, because a value that was written by hand
// must not fail the whole page. It is valid until the next row is read.
type record struct {
	ID          sql.RawBytes `db:"id"`
	Tag         sql.RawBytes `db:"tag"`
	Key         sql.RawBytes `db:"task_key"`
	Body        sql.RawBytes `db:"message_body"`
	Status      sql.RawBytes `db:"status"`
	Version     sql.RawBytes `db:"version"`
	Attempt     sql.RawBytes `db:"attempt"`
	MaxAttempts sql.RawBytes `db:"max_attempts"`
	CrashCount  sql.RawBytes `db:"crash_count"`
	TTR         sql.RawBytes `db:"ttr"`
	Priority    sql.RawBytes `db:"priority"`
	Headers     sql.RawBytes `db:"headers"`
	MaxLate     sql.RawBytes `db:"max_late_ms"`
	LatePolicy  sql.RawBytes `db:"late_policy"`
	Late        sql.RawBytes `db:"late_reason"`
	IPAddress   sql.RawBytes `db:"ip_address"`
	Executor    sql.RawBytes `db:"executor"`
	Delay       sql.RawBytes `db:"delay_time"`
	Expected    sql.RawBytes `db:"expected_time"`
	Execution   sql.RawBytes `db:"execution_time"`
	Finish      sql.RawBytes `db:"finish_time"`
	Due         sql.RawBytes `db:"due_time"`
	ErrorStack  sql.RawBytes `db:"error_stack"`
	Errors      sql.RawBytes `db:"errors"`
	Created     sql.RawBytes `db:"create_time"`
	Updated     sql.RawBytes `db:"update_time"`
	Schedule    sql.RawBytes `db:"schedule"`
	Tick        sql.RawBytes `db:"tick"`
	Cause       sql.RawBytes `db:"cause"`
	RetryBefore sql.RawBytes `db:"retry_before"`
	TickContext sql.RawBytes `db:"tick_context"`

	DBTime   sql.RawBytes `db:"db_time"`
	DBServer sql.RawBytes `db:"db_server"`
}

const maxMillis = int64(math.MaxInt64 / time.Millisecond)

// row decodes a whole row. The error says what is wrong with it. Then id, version and status are set if they could be
// read.
func (r *record) row() (row.Row, error) {
	var d decoder
	decoded := r.attempt(&d)
	decoded.Status = row.Status(d.int("status", r.Status, 0, math.MaxUint8))
	decoded.IPAddress = uint32(d.optional("ip_address", r.IPAddress, math.MaxUint32))
	decoded.Executor = string(d.notNull("executor", r.Executor))
	decoded.Delay = d.millis("delay_time", r.Delay)
	decoded.Late = row.LateReason(d.optional("late_reason", r.Late, math.MaxUint8))
	decoded.Created = d.time("create_time", d.notNull("create_time", r.Created))
	decoded.Updated = d.time("update_time", d.notNull("update_time", r.Updated))
	if decoded.Status > row.Cancelled {
		d.fail("status", fmt.Errorf("%d is not known", decoded.Status))
	}
	return decoded, d.err
}

// claimed decodes a row that a claim has won, as far as an attempt needs it.
func (r *record) claimed(by row.Claim) (row.Row, error) {
	var d decoder
	decoded := r.attempt(&d)
	decoded.Status, decoded.Executor, decoded.IPAddress = row.Executing, by.Executor, by.IP
	return decoded, d.err
}

// attempt decodes what an attempt needs of a row.
func (r *record) attempt(d *decoder) row.Row {
	return row.Row{
		ID:          d.int("id", r.ID, 1, math.MaxInt64),
		Version:     d.version(r.Version),
		Tag:         string(d.notNull("tag", r.Tag)),
		Key:         string(r.Key),
		Body:        bytes.Clone(r.Body),
		Attempt:     int(d.int("attempt", r.Attempt, 0, math.MaxInt32)),
		MaxAttempts: int(d.optional("max_attempts", r.MaxAttempts, math.MaxInt32)),
		CrashCount:  int(d.int("crash_count", r.CrashCount, 0, math.MaxInt32)),
		TTR:         max(d.millis("ttr", r.TTR), row.MinTTR),
		Priority:    int(d.int("priority", r.Priority, math.MinInt16, math.MaxInt16)),
		Headers:     d.json("headers", r.Headers, &map[string]json.RawMessage{}),
		MaxLate:     d.millis("max_late_ms", r.MaxLate),
		LatePolicy:  row.LatePolicy(d.int("late_policy", r.LatePolicy, 0, int64(row.LateFail))),
		Expected:    d.time("expected_time", d.notNull("expected_time", r.Expected)),
		Execution:   d.time("execution_time", r.Execution),
		Finish:      d.time("finish_time", r.Finish),
		Due:         d.time("due_time", r.Due),
		ErrorStack:  string(r.ErrorStack),
		Errors:      d.json("errors", r.Errors, &[]json.RawMessage{}),
		TickOf:      r.tickOf(d),
	}
}

// tickOf decodes which tick the task is the run of. It returns nil for a task that no schedule has made.
func (r *record) tickOf(d *decoder) *row.TickOf {
	if r.Schedule == nil {
		return nil
	}
	of := &row.TickOf{
		Schedule:    string(r.Schedule),
		Tick:        d.time("tick", d.notNull("tick", r.Tick)),
		Cause:       row.Cause(d.int("cause", r.Cause, 0, int64(row.CauseBackfill))),
		RetryBefore: d.time("retry_before", r.RetryBefore),
	}
	if err := of.ReadContext(r.TickContext); err != nil {
		d.fail("tick_context", err)
	}
	return of
}

// state decodes the state of a row. It cannot fail: a due time that cannot be read counts as not set.
func (r *record) state() row.State {
	var d decoder
	return row.State{
		ID:       d.int("id", r.ID, 1, math.MaxInt64),
		Tag:      string(r.Tag),
		Version:  d.version(r.Version),
		Status:   row.Status(d.int("status", r.Status, 0, math.MaxUint8)),
		Due:      d.time("due_time", r.Due),
		Executor: string(r.Executor),
	}
}

// due decodes what arming and claiming need of a row. What cannot be read is left zero: the claim reads the row again,
// and reports it as broken.
func (r *record) due() row.Due {
	var d decoder
	return row.Due{
		ID:         d.int("id", r.ID, 1, math.MaxInt64),
		Version:    d.version(r.Version),
		Tag:        string(r.Tag),
		Due:        d.time("due_time", r.Due),
		Priority:   int(d.int("priority", r.Priority, math.MinInt16, math.MaxInt16)),
		CrashCount: int(d.int("crash_count", r.CrashCount, 0, math.MaxInt32)),
	}
}

func (r *record) reading() (row.Reading, error) {
	var d decoder
	reading := row.Reading{Time: d.time("the server's time", r.DBTime), Server: string(r.DBServer)}
	return reading, d.err
}

// decoder keeps the first error of a row.
type decoder struct{ err error }

var errNull = errors.New("is NULL")

func (d *decoder) fail(column string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("column %s: %w", column, err)
	}
}

func (d *decoder) notNull(column string, raw []byte) []byte {
	if raw == nil {
		d.fail(column, errNull)
	}
	return raw
}

func (d *decoder) int(column string, raw []byte, least, most int64) int64 {
	if raw == nil {
		d.fail(column, errNull)
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("%d is out of range", n)
	}
	if err != nil {
		d.fail(column, err)
		return 0
	}
	return n
}

// usedUp is a version that no task reaches. The next one may exceed the column.
const usedUp = 1 << 62

// version returns a version that is used up too, as far as an int64 holds it, so that the row can be named.
func (d *decoder) version(raw []byte) int64 {
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil && n >= usedUp {
		d.fail("version", fmt.Errorf("%d is out of range", n))
		return int64(min(n, math.MaxInt64))
	}
	return d.int("version", raw, 0, usedUp)
}

// optional is int for a column where NULL means zero.
func (d *decoder) optional(column string, raw []byte, most int64) int64 {
	if raw == nil {
		return 0
	}
	return d.int(column, raw, 0, most)
}

func (d *decoder) millis(column string, raw []byte) time.Duration {
	return time.Duration(d.int(column, raw, 0, maxMillis)) * time.Millisecond
}

func (d *decoder) time(column string, raw []byte) row.Time {
	if raw == nil {
		return 0
	}
	var t row.Time
	if err := t.Scan([]byte(raw)); err != nil {
		d.fail(column, err)
		return 0
	}
	return t
}

// json checks that raw decodes into shape, and returns it compact: a server may store JSON in another form.
func (d *decoder) json(column string, raw []byte, shape any) []byte {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, shape); err != nil {
		d.fail(column, err)
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		d.fail(column, err)
		return nil
	}
	return out.Bytes()
}
