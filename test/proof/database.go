package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/lateness"
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
	return lateness.SameClock(ctx, pool)
}
