package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// serverCounts is what a server has counted since it started.
type serverCounts struct {
	at         time.Time
	statements float64
	sent       float64 // bytes to its clients
	reads      float64 // rows, and entries of indexes
}

// countsOf asks the server of a pool.
func countsOf(ctx context.Context, pool *sql.DB) (c serverCounts, err error) {
	rows, err := pool.QueryContext(ctx, "SHOW GLOBAL STATUS")
	if err != nil {
		return c, fmt.Errorf("read what the server has counted: %w", err)
	}
	defer func() { _ = rows.Close() }()
	c.at = time.Now()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return c, err
		}
		var n float64
		_, _ = fmt.Sscan(value, &n) // others are texts
		switch {
		case name == "Questions":
			c.statements = n
		case name == "Bytes_sent":
			c.sent = n
		case strings.HasPrefix(name, "Handler_read_"):
			c.reads += n
		}
	}
	return c, rows.Err()
}

// connectionsOf is how many connections a server has, without this one.
func connectionsOf(ctx context.Context, pool *sql.DB) (n float64, err error) {
	var name string
	err = pool.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &n)
	return n - 1, err
}

// perSecond is what was counted since an earlier moment.
func (c serverCounts) perSecond(since serverCounts) serverCounts {
	seconds := c.at.Sub(since.at).Seconds()
	return serverCounts{
		statements: (c.statements - since.statements) / seconds, sent: (c.sent - since.sent) / seconds,
		reads: (c.reads - since.reads) / seconds,
	}
}
