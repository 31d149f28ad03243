package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
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
