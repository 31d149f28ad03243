package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// from returns what a read runs on: the caller's transaction when there is one.
func (s *Store) from(tx store.Tx) queryer {
	if tx != nil {
		return tx
	}
	return s.db
}

// found is a row, as far as the selected columns tell.
type found[T any] struct {
	row     T
	err     error       // of the first column that cannot be decoded; its field has the zero value then
	there   bool        // its first column is not NULL: an outer join has found the row
	reading row.Reading // of the clock, where the query selects it
}

// read runs a query of a table's columns and calls each for every row, which is valid only during that call. Values are
// read as bytes, whatever the column's type, because one that was written by hand must not fail the whole page.
func read[T any](ctx context.Context, q queryer, query clause, of *tableOf[T], each func(*found[T])) error {
	var f found[T]
	var d decoder
	var values []sql.RawBytes
	var decode []func(*decoder, *T, []byte)
	first, clock, server := -1, -1, -1 // places of columns
	bind := func(columns []string) ([]any, error) {
		values, decode = make([]sql.RawBytes, len(columns)), make([]func(*decoder, *T, []byte), len(columns))
		fields := make([]any, len(columns))
		for i, name := range columns {
			fields[i] = &values[i]
			switch c, known := of.byName[name]; {
			case known:
				decode[i] = c.decode
				if first < 0 {
					first = i
				}
			case name == "db_time":
				clock = i
			case name == "db_server":
				server = i
			default:
				return nil, fmt.Errorf("%s has no column %s", of.name, name)
			}
		}
		return fields, nil
	}
	return eachRow(ctx, q, query, bind, func() error {
		f, d = found[T]{there: first >= 0 && values[first] != nil}, decoder{}
		for i, decode := range decode {
			if decode != nil {
				decode(&d, &f.row, values[i])
			}
		}
		f.err = d.err
		if clock >= 0 && values[clock] != nil {
			var err error
			if f.reading, err = readingOf(values[clock], values[server]); err != nil {
				return err
			}
		}
		each(&f)
		return nil
	})
}

// readAll returns the rows of a query of a table's columns, and the clock where the query selects it. What cannot be
// read of a row is zero: one broken row must not hide the others.
func readAll[T any](ctx context.Context, q queryer, query clause, of *tableOf[T]) (
	all []T, reading row.Reading, err error) {
	err = read(ctx, q, query, of, func(f *found[T]) {
		reading = f.reading
		if f.there {
			all = append(all, f.row)
		}
	})
	return all, reading, err
}

// page collects what a read of whole rows finds. Rows that cannot be decoded are in broken.
type page struct {
	rows   []row.Row
	broken []row.Broken
}

func (p *page) add(f *found[row.Row]) {
	if f.err != nil {
		p.broken = append(p.broken, row.Broken{
			Ref:    row.Ref{ID: f.row.ID, Version: f.row.Version},
			Status: f.row.Status,
			Reason: "the row cannot be decoded: " + f.err.Error(),
			Read:   f.row,
		})
		return
	}
	p.rows = append(p.rows, f.row)
}

// readTasks returns whole rows, and those that cannot be decoded.
func readTasks(ctx context.Context, op string, q queryer, query clause) ([]row.Row, []row.Broken, error) {
	var p page
	err := read(ctx, q, query, tasks, p.add)
	return p.rows, p.broken, classify(op, err)
}

func statesOf(ctx context.Context, d dialect, q queryer, ids []int64) ([]row.State, error) {
	return readStates(ctx, q, d.rowsByID(selectList(d, "", stateColumns), ids))
}

func readStates(ctx context.Context, q queryer, query clause) (states []row.State, err error) {
	err = read(ctx, q, query, tasks, func(f *found[row.Row]) { states = append(states, f.row.State()) })
	return states, err
}

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	if s.servers == nil {
		reading, err := readClock(ctx, s.dialect, s.db)
		return reading, classify("read the database's clock", err)
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	reading, err := s.servers.now(ctx, func(conn *sql.Conn) (row.Reading, error) {
		return readClock(ctx, s.dialect, conn)
	})
	return reading, classify("read the database's clock", err)
}

// noTable is read for the clock alone.
var noTable = newTable[none]("no table")

type none struct{}

func readClock(ctx context.Context, d dialect, q queryer) (reading row.Reading, err error) {
	asked := time.Now()
	_, reading, err = readAll(ctx, q, clause{sql: "SELECT " + d.reading()}, noTable)
	reading.Asked = asked
	return reading, err
}

func readingOf(clock, server []byte) (row.Reading, error) {
	var d decoder
	reading := row.Reading{Time: d.time("the server's time", clock), Server: string(server)}
	return reading, d.err
}

// taskList selects whole tasks.
func (d dialect) taskList(bodies bool) string { return withBodies(d, wholeColumns, bodies) }

// claimedList leaves out what the claim has written and what no attempt needs, which saves a third of the cost of
// reading back many rows. The row with the lowest id also reads the clock.
func (d dialect) claimedList(lowest int64) string {
	once := func(expression, name string) string {
		return fmt.Sprintf("CASE WHEN id = %d THEN %s END AS %s", lowest, expression, name)
	}
	return strings.Join([]string{
		selectList(d, "", claimedColumns), once("CAST("+d.now+" AS CHAR)", "db_time"), once(d.server, "db_server"),
	}, ", ")
}

// rowsByID reads the columns of the rows, in the order of their ids. MariaDB 11 would scan a table that it believes to
// be small.
func (d dialect) rowsByID(columns string, ids []int64) clause {
	return clause{sql: "SELECT " + columns + " FROM " + table + d.byID +
		" WHERE id IN (" + idList(ids) + ") ORDER BY id"}
}
