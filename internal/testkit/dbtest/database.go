package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Database is an empty database of one test. It is dropped when the test ends.
type Database struct {
	Kind   Kind
	DSN    string // in the form that delaytask takes; of a cluster: of one of its members in turn
	Server string // which server and version, for messages

	Members []string // of a cluster: the DSNs of all its members

	spread string
}

// Spread returns the database as behind a balancer: each new connection goes to the next member of the cluster, and
// sees what was committed on the others before. Without a cluster it returns d.
func (d Database) Spread() Database {
	if d.spread != "" {
		d.DSN = d.spread
	}
	return d
}

// fresh creates a database for a test and drops it when the test ends.
func (s *server) fresh(tb testing.TB) Database {
	tb.Helper()
	db, drop, err := s.create(tb.Context())
	must(tb, err)
	closeAtEnd(tb, drop)
	return db
}

// create makes an empty database. The function drops it.
func (s *server) create(ctx context.Context) (Database, func() error, error) {
	if s.kind == SQLite {
		dir, err := os.MkdirTemp("", "delaytask-db-")
		db := Database{Kind: SQLite, DSN: "sqlite:" + filepath.Join(dir, "test.db"), Server: s.String()}
		return db, func() error { return os.RemoveAll(dir) }, err
	}
	name := "delaytask_test_" + strings.ToLower(rand.Text())
	owner := s.cfg.Clone()
	owner.Params = causal[s.kind]
	if err := run(ctx, owner, "CREATE DATABASE "+name); err != nil {
		return Database{}, nil, fmt.Errorf("create a database on %s: %w", s, err)
	}
	drop := func() error {
		if err := s.awaitLeft(context.Background(), name); err != nil {
			return err
		}
		if err := run(context.Background(), owner, "DROP DATABASE "+name); err != nil {
			return fmt.Errorf("drop %s, which an open transaction prevents: %w", name, err)
		}
		return nil
	}
	if err := s.awaitDatabase(ctx, name); err != nil {
		return Database{}, nil, errors.Join(err, drop())
	}
	dsn := func(cfg *mysql.Config) string {
		cfg = cfg.Clone()
		cfg.DBName = name
		return cfg.FormatDSN()
	}
	db := Database{Kind: s.kind, DSN: dsn(s.member()), Server: s.String()}
	for _, m := range s.members {
		db.Members = append(db.Members, dsn(m))
	}
	if s.members != nil {
		db.spread = s.spread(name)
	}
	return db, drop, nil
}

// lasting makes an empty database that is not dropped.
func (s *server) lasting(ctx context.Context) (Database, error) {
	db, _, err := s.create(ctx)
	return db, err
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func closeAtEnd(tb testing.TB, end func() error) {
	tb.Cleanup(func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	})
}
