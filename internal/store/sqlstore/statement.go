package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// queryer is what reads run on: the pool, a connection of a lane, or a caller's transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// lender is a [queryer] that reads on one of its connections.
type lender interface {
	read(ctx context.Context, f func(*sql.Conn) error) error
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// statementTimeout bounds every statement whose context has no deadline.
const statementTimeout = 10 * time.Second

// withDeadline bounds a statement whose context has no deadline.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, statementTimeout)
}

// ended is a read that the server ends when ctx does, where it can.
func (d dialect) ended(ctx context.Context, read clause) clause {
	if !d.limits {
		return read
	}
	return endedWith(ctx, read)
}

// leavesFirst is how much earlier than the server a caller gives up, so that it sees its own deadline.
const leavesFirst = 100 * time.Millisecond

// endedWith is a read that a MySQL server ends when ctx has. Otherwise it goes on reading for a caller that has left,
// beside the caller's next try, and the slower it gets the more of them there are.
func endedWith(ctx context.Context, read clause) clause {
	deadline, ok := ctx.Deadline()
	if !ok {
		return read
	}
	return endedAfter(time.Until(deadline)+leavesFirst, read)
}

// endedAfter is a read that a MySQL server ends after so long. MySQL takes MariaDB's way for a comment, and MariaDB the
// way of MySQL.
func endedAfter(limit time.Duration, read clause) clause {
	limit = max(limit, time.Millisecond) // a server takes 0 for no limit
	read.sql = fmt.Sprintf("/*M!100600 SET STATEMENT max_statement_time = %.3f FOR */"+
		" SELECT /*+ MAX_EXECUTION_TIME(%d) */", limit.Seconds(), limit.Milliseconds()) +
		strings.TrimPrefix(read.sql, "SELECT")
	return read
}

func execute(ctx context.Context, on execer, c clause) (int, error) {
	result, err := on.ExecContext(ctx, c.sql, c.args...)
	if err != nil {
		return 0, outcome(ctx, err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// scan runs a query, reads each row into the fields, which stand in the order of the columns, and calls each.
func scan(ctx context.Context, q queryer, query clause, each func(), fields ...any) error {
	bind := func([]string) ([]any, error) { return fields, nil }
	return eachRow(ctx, q, query, bind, func() error {
		each()
		return nil
	})
}

// firsts returns what the one column of a query holds.
func firsts[T any](ctx context.Context, q queryer, query clause) (all []T, err error) {
	var value T
	err = scan(ctx, q, query, func() { all = append(all, value) }, &value)
	return all, err
}

// eachRow runs a query, reads each row into what bind returns for its columns, and calls each. The settings of a pool
// may put the table's name in front of each column's; bind gets the names without it.
func eachRow(ctx context.Context, q queryer, query clause, bind func(columns []string) ([]any, error),
	each func() error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	if p, ok := q.(lender); ok {
		return p.read(ctx, func(conn *sql.Conn) error { return eachRow(ctx, conn, query, bind, each) })
	}
	rows, err := q.QueryContext(ctx, query.sql, query.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for i, name := range columns {
		columns[i] = name[strings.LastIndexByte(name, '.')+1:]
	}
	fields, err := bind(columns)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// discard closes the connection for good.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// readTexts returns the rows of a query as texts by the names of the columns in lower case. NULL is "".
func readTexts(ctx context.Context, q queryer, query string, args ...any) (all []map[string]string, err error) {
	var names []string
	var values []sql.NullString
	bind := func(columns []string) ([]any, error) {
		names, values = columns, make([]sql.NullString, len(columns))
		fields := make([]any, len(columns))
		for i := range values {
			fields[i] = &values[i]
		}
		return fields, nil
	}
	err = eachRow(ctx, q, clause{query, args}, bind, func() error {
		texts := make(map[string]string, len(names))
		for i, name := range names {
			texts[strings.ToLower(name)] = values[i].String
		}
		all = append(all, texts)
		return nil
	})
	return all, err
}

// decimal reads a number that a server has written. Anything else counts as 0.
func decimal(text string) (n int64) {
	_, _ = fmt.Sscan(text, &n)
	return n
}
