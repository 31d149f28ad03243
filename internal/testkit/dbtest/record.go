package dbtest

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
)

// Recorder notes every statement that the connections of a connector are sent.
type Recorder struct {
	driver.Connector

	mu   sync.Mutex
	sent map[string]bool
}

// Record wraps a connector of go-sql-driver.
func Record(c driver.Connector) *Recorder {
	r := &Recorder{sent: map[string]bool{}}
	r.Connector = Intercept(c, func(statement string, _ driver.Conn, send func() error) error {
		r.note(statement)
		return send()
	})
	return r
}

// Statements returns what was sent, each text once, sorted.
func (r *Recorder) Statements() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	statements := make([]string, 0, len(r.sent))
	for s := range r.sent {
		statements = append(statements, s)
	}
	slices.Sort(statements)
	return statements
}

func (r *Recorder) note(statement string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[statement] = true
}

// Hook stands between a program and one of its connections. It may send the statement, and returns what the program is
// told of it.
type Hook func(statement string, on driver.Conn, send func() error) error

// Intercept passes every statement that the connections of a connector of go-sql-driver are sent through a hook.
func Intercept(c driver.Connector, hook Hook) driver.Connector { return interceptor{c, hook} }

type interceptor struct {
	driver.Connector
	hook Hook
}

// Connect implements [driver.Connector].
func (i interceptor) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := i.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &intercepted{conn.(mysqlConn), i.hook}, nil
}

// mysqlConn holds the interfaces that go-sql-driver's connections implement for database/sql.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type intercepted struct {
	mysqlConn
	hook Hook
}

func (c *intercepted) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (result driver.Result, err error) {
	err = c.hook(query, c.mysqlConn, func() (err error) {
		result, err = c.mysqlConn.ExecContext(ctx, query, args)
		return err
	})
	return result, err
}

func (c *intercepted) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (rows driver.Rows, err error) {
	err = c.hook(query, c.mysqlConn, func() (err error) {
		rows, err = c.mysqlConn.QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}
