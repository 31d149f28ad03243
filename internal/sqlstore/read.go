package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
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

// scan runs a query and hands over its rows one by one. The destination, and what it points to, is valid during the call only.
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

// fieldsOf returns pointers to the fields of a struct that the columns are read into. A pool may be set up to put the table's
// name in front of each column's.
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
