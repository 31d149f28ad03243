package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// connect opens a pool as another program of the user would, without delaytask.
func connect(db dbtest.Database) (*sql.DB, error) {
	if db.Kind == dbtest.SQLite {
		return sql.Open("sqlite", strings.TrimPrefix(db.DSN, "sqlite:")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	}
	return sql.Open("mysql", db.DSN)
}

// describe names the server with its version.
func describe(ctx context.Context, db dbtest.Database) (string, error) {
	if db.Kind != dbtest.SQLite {
		return db.Server, nil
	}
	pool, err := connect(db)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	var version string
	if err := pool.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return "", fmt.Errorf("ask for SQLite's version: %w", err)
	}
	return "SQLite " + version, nil
}

// clockReadings is how often the server is asked for its time: a slow reply to one of them must not hide a wrong clock.
const clockReadings = 5

// sameClock refuses a server with another clock than this process: proofs judge by time.Now what is due by the server's clock.
func sameClock(ctx context.Context, db dbtest.Database) error {
	if db.Kind == dbtest.SQLite {
		return nil
	}
	pool, err := connect(db)
	if err != nil {
		return err
	}
	defer pool.Close()
	least, most := time.Duration(math.MinInt64), time.Duration(math.MaxInt64) // bounds of how far the server is ahead
	for range clockReadings {
		var text string
		sent := time.Now()
		if err := pool.QueryRowContext(ctx, "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR)").Scan(&text); err != nil {
			return fmt.Errorf("read the server's clock: %w", err)
		}
		received := time.Now()
		server, err := time.Parse("2006-01-02 15:04:05.000000", text)
		if err != nil {
			return fmt.Errorf("read the server's clock: %w", err)
		}
		least, most = max(least, server.Sub(received)), min(most, server.Sub(sent))
	}
	if least > time.Microsecond || most < -time.Microsecond { // the server cuts its time off at a microsecond
		return errors.New("the server's clock is not this machine's, so nobody could say what is early;" +
			" use a server on this machine")
	}
	return nil
}
