package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// server is a running MySQL server that databases can be created on.
type server struct {
	kind    Kind
	version string
	origin  string // how it was found
	cfg     *mysql.Config
	members []*mysql.Config // of a cluster
	stop    func() error    // ends a private server; nil for one that was named
}

func (s *server) String() string {
	if s.kind == SQLite {
		return "SQLite"
	}
	name := map[Kind]string{
		MariaDB: "MariaDB", MySQL: "MySQL", Galera: "MariaDB Galera cluster", Group: "MySQL group replication",
	}[s.kind]
	return fmt.Sprintf("%s %s (%s)", name, s.version, s.origin)
}

// dial asks a server what it is.
func dial(ctx context.Context, cfg *mysql.Config, origin string) (*server, error) {
	db, err := open(cfg)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	s := &server{cfg: cfg, origin: origin}
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version); err != nil {
		return nil, err
	}
	s.kind = kindOf(s.version)
	return s, nil
}

func kindOf(version string) Kind {
	if strings.Contains(version, "MariaDB") {
		return MariaDB
	}
	return MySQL
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

// run uses a pool for one statement: an open pool would look like a leak to tests that count goroutines.
func run(ctx context.Context, cfg *mysql.Config, statement string) error {
	db, err := open(cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// open connects without a database: the one in a DSN need not exist.
func open(cfg *mysql.Config) (*sql.DB, error) {
	cfg = cfg.Clone()
	cfg.DBName = ""
	cfg.Timeout = 5 * time.Second
	cfg.Logger = &mysql.NopLogger{} // a server that is starting refuses connections for a while
	cfg.Params = maps.Clone(cfg.Params)
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["lock_wait_timeout"] = "20"
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
