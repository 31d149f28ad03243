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
func Record(c driver.Connector) *Recorder { return &Recorder{Connector: c, sent: map[string]bool{}} }

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

// Connect implements [driver.Connector].
func (r *Recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recorded{conn.(mysqlConn), r}, nil
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

type recorded struct {
	mysqlConn
	to *Recorder
}

func (c *recorded) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.to.note(query)
	return c.mysqlConn.ExecContext(ctx, query, args)
}

func (c *recorded) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.note(query)
	return c.mysqlConn.QueryContext(ctx, query, args)
}
