package viewers

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
)

// Counter counts the statements of a pool, except a scheduler's own. It tells them by their context. What is
// left out is marked: some reads of a dashboard have no request's context, because all viewers share them.
type Counter struct {
	mu               sync.Mutex // guards what follows
	statements       int
	underWay, atMost int
}

// LeftOut marks a context whose statements are not counted.
func (c *Counter) LeftOut(ctx context.Context) context.Context {
	return context.WithValue(ctx, c, true)
}

// Through counts on the connections that the connector makes. The driver must be go-sql-driver or
// modernc.org/sqlite.
func (c *Counter) Through(inner driver.Connector) driver.Connector { return connector{inner, c} }

// Take returns how many statements began since the last call, and how many were under way at most at once. Each of
// these has a connection of its own.
func (c *Counter) Take() (statements, connections int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	statements, connections = c.statements, c.atMost
	c.statements, c.atMost = 0, c.underWay
	return statements, connections
}

// begin counts a statement, and returns what ends it.
func (c *Counter) begin(ctx context.Context) (end func()) {
	if ctx.Value(c) != nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements++
	c.underWay++
	c.atMost = max(c.atMost, c.underWay)
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underWay--
	})
}

type connector struct {
	driver.Connector
	counter *Counter
}

// Connect implements [driver.Connector].
func (k connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := inner.(wholeConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("statements of a %T cannot be counted", inner), inner.Close())
	}
	return &conn{whole, k.counter}, nil
}

// wholeConn holds the interfaces that connections of both drivers implement for package sql.
type wholeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type conn struct {
	wholeConn
	counter *Counter
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.counter.begin(ctx)() // its end, of which the driver is told without a context
	defer c.counter.begin(ctx)()
	return c.wholeConn.BeginTx(ctx, o)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.counter.begin(ctx)()
	return c.wholeConn.PrepareContext(ctx, query)
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.counter.begin(ctx)()
	return c.wholeConn.ExecContext(ctx, query, args)
}

// QueryContext implements [driver.QueryerContext]. The statement ends when its rows are closed.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	end := c.counter.begin(ctx)
	found, err := c.wholeConn.QueryContext(ctx, query, args)
	if err != nil {
		end()
		return nil, err
	}
	return rows{found, end}, nil
}

type rows struct {
	driver.Rows
	end func()
}

// Close implements [driver.Rows].
func (r rows) Close() error {
	defer r.end()
	return r.Rows.Close()
}

// CheckNamedValue implements [driver.NamedValueChecker] as the driver does.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, own := c.wholeConn.(driver.NamedValueChecker); own {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}
