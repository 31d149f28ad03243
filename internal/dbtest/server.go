package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// server is a running MySQL server on which databases can be created.
type server struct {
	kind    Kind
	version string
	origin  string // how it was found
	cfg     *mysql.Config
	stop    func() error // ends a server of our own; nil for others'
}

func (s *server) String() string {
	name := map[Kind]string{MariaDB: "MariaDB", MySQL: "MySQL"}[s.kind]
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
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := drop(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// create makes an empty database. The function drops it.
func (s *server) create(ctx context.Context) (Database, func() error, error) {
	name := "delaytask_test_" + strings.ToLower(rand.Text())
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		return Database{}, nil, fmt.Errorf("create a database on %s: %w", s, err)
	}
	drop := func() error {
		if err := s.exec(context.Background(), "DROP DATABASE "+name); err != nil {
			return fmt.Errorf("drop %s, which an open transaction prevents: %w", name, err)
		}
		return nil
	}
	cfg := s.cfg.Clone()
	cfg.DBName = name
	return Database{Kind: s.kind, DSN: cfg.FormatDSN(), Server: s.String()}, drop, nil
}

// exec uses a pool for one statement: an open pool would look like a leak to tests that count goroutines.
func (s *server) exec(ctx context.Context, statement string) error {
	db, err := open(s.cfg)
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
	cfg.Params = map[string]string{"lock_wait_timeout": "20"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
