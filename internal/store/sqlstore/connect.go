package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/row"
)

// Limits of a pool that Connect opens. A caller that wants other numbers sets them on that pool.
const (
	maxConns = 28 // those for writes, and six for reads
	// One for writes, one for the file's version, and others for reads, each with up to 2 MB of pages.
	maxSQLiteConns = 5
	// A connection is renewed long before a server's wait_timeout or a balancer's idle limit closes it. The pool
	// follows a failover within that time.
	maxLifetime = 3 * time.Minute
	maxIdleTime = 10 * time.Second

	dialTimeout  = 5 * time.Second
	readTimeout  = 30 * time.Second // longest wait for one reply of a server that hangs
	writeTimeout = 10 * time.Second

	// busyTimeout bounds the wait for another process that writes to the same SQLite file.
	busyTimeout = 5 * time.Second
)

// Connect opens a pool on the database that dsn names, and pings it. An error is [ErrInvalidDSN] or a *row.Error with a
// hint of what to do. None shows the password.
//
// The connections of a SQLite pool are for reads beside one write. Several writers are allowed, but they wait for each
// other by polling. Each of through is given what makes the connections, and returns what makes them instead.
func Connect(
	ctx context.Context, dsn string, through ...func(driver.Connector) driver.Connector,
) (*sqlx.DB, Kind, error) {
	target, err := ParseDSN(dsn)
	if err != nil {
		return nil, 0, err
	}
	db, err := target.open(through)
	if err != nil {
		return nil, 0, err
	}
	if err := reach(ctx, db, target); err != nil {
		_ = db.Close() // the first error says more
		return nil, 0, err
	}
	return db, target.kind, nil
}

// Disconnect closes a pool of [Connect]. A connection that the server has closed before is closed as well: that is no
// error.
func Disconnect(db *sqlx.DB) error {
	err := db.Close()
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) {
		return nil
	}
	return err
}

// KindOf returns the kind of database that a pool leads to. It asks the driver, and the database where that is a driver
// that wraps another.
func KindOf(ctx context.Context, db *sql.DB) (Kind, error) {
	if _, ok := db.Driver().(*mysql.MySQLDriver); ok {
		return MySQL, nil
	}
	var version string
	mysqlErr := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	if mysqlErr == nil {
		return MySQL, nil
	}
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err == nil {
		if newSQLite == nil {
			return 0, ErrUnknownDriver
		}
		return SQLite, nil
	}
	return 0, fmt.Errorf("the pool leads neither to MySQL or MariaDB nor to SQLite: %w", mysqlErr)
}

// How long another process may keep a SQLite file from being opened, and the pause between two tries.
const (
	openWait  = 5 * time.Second
	openPause = 10 * time.Millisecond
)

// reach opens the first connection. SQLite ignores its busy timeout while two processes switch a new file to WAL, so
// reach waits instead.
func reach(ctx context.Context, db *sqlx.DB, target Target) error {
	for until := time.Now().Add(openWait); ; {
		err := classify("connect to "+target.Redacted(), db.PingContext(ctx))
		busy := target.kind == SQLite && isOf(err, row.ClassNotApplied)
		if err == nil || !busy || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(openPause):
		}
	}
}

// Prepared reports whether an embedded database holds tables of delaytask. It only reads the file, while [Connect]
// creates a missing one and switches any to WAL.
func (t Target) Prepared(ctx context.Context) (bool, error) {
	connector, err := t.sqlite(url.Values{"mode": {"ro"}, "_pragma": {pragmaBusyTimeout}})
	if err != nil {
		return false, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	const count = "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'delay\\_task\\_%' ESCAPE '\\'"
	var tables int
	err = db.QueryRowContext(ctx, count).Scan(&tables)
	return tables > 0, classify("read "+t.Redacted(), err)
}

func (t Target) open(through []func(driver.Connector) driver.Connector) (*sqlx.DB, error) {
	connector, err := t.connector()
	if err != nil {
		return nil, err
	}
	for _, wrap := range through {
		connector = wrap(connector)
	}
	db, conns := sql.OpenDB(connector), maxSQLiteConns
	if t.kind == MySQL {
		conns = maxConns
		db.SetConnMaxLifetime(maxLifetime)
		db.SetConnMaxIdleTime(maxIdleTime)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return sqlx.NewDb(db, t.kind.String()), nil
}

// creating is held while this process makes the file of an embedded database. Closing a file ends all locks that the
// process has on it, so SQLite must not have opened it before.
var creating sync.Mutex

// createPrivate makes a missing file, readable for its owner only. SQLite gives the files beside it the same mode. A
// failure is left to SQLite, whose error says more.
func (t Target) createPrivate() {
	creating.Lock()
	defer creating.Unlock()
	file, err := os.OpenFile(t.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = file.Close() // nothing was written
	}
}

func (t Target) connector() (driver.Connector, error) {
	if t.kind == MySQL {
		connector, err := mysql.NewConnector(t.cfg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidDSN, err)
		}
		return connector, nil
	}
	params := url.Values{
		"_txlock": {"immediate"}, // a transaction that reads first would otherwise fail at its first write
		"_pragma": {
			pragmaBusyTimeout, // first: switching to WAL may already have to wait
			"journal_mode(WAL)",
			"synchronous(FULL)", // NORMAL, usual with WAL, loses accepted tasks at a power cut
			"foreign_keys(ON)",
		},
	}
	connector, err := t.sqlite(params)
	if err == nil {
		t.createPrivate()
	}
	return connector, err
}

// newSQLite makes connections to a SQLite file. Package sqlite of the root sets it: a program that does not import that
// links no SQLite.
var newSQLite func(uri string) (driver.Connector, error)

// RegisterSQLite sets what makes connections to SQLite files. They have the functions delaytask_now and delaytask_add.
// It is called before anything is opened.
func RegisterSQLite(connector func(uri string) (driver.Connector, error)) { newSQLite = connector }

// ErrUnknownDriver is returned for a SQLite database by a program without its driver.
var ErrUnknownDriver = errors.New("this program has no driver for SQLite: add" +
	" import _ \"github.com/delaytask/delaytask/sqlite\", or open a MySQL DSN such as user:password@tcp(host:3306)/db")

func (t Target) sqlite(params url.Values) (driver.Connector, error) {
	if newSQLite == nil {
		return nil, ErrUnknownDriver
	}
	connector, err := newSQLite(t.fileURI(params))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidDSN, err)
	}
	return connector, nil
}

var pragmaBusyTimeout = fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())

func (t Target) fileURI(params url.Values) string {
	path := filepath.ToSlash(t.file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	uri := url.URL{Scheme: "file", Path: path, RawQuery: params.Encode()}
	return uri.String()
}

// ownSession sets everything about a MySQL session that could change what is stored or how a failure looks, whatever
// the DSN says. It keeps the timeouts of the DSN.
func ownSession(cfg *mysql.Config) error {
	cfg.InterpolateParams = true // one round trip for a statement instead of two
	cfg.RejectReadOnly = true    // a demoted primary makes the pool look for the new one
	cfg.CheckConnLiveness = true
	cfg.ClientFoundRows = false
	cfg.ColumnsWithAlias = false
	cfg.MultiStatements = false
	cfg.AllowAllFiles = false
	cfg.ParseTime = false
	cfg.Loc = time.UTC
	// Ask the server for its limit. A packet beyond it would cost the connection, with the outcome unknown.
	cfg.MaxAllowedPacket = 0
	cfg.Logger = &mysql.NopLogger{} // what it would print is also returned as an error
	cfg.Timeout = cmp.Or(max(cfg.Timeout, 0), dialTimeout)
	cfg.ReadTimeout = cmp.Or(max(cfg.ReadTimeout, 0), readTimeout)
	cfg.WriteTimeout = cmp.Or(max(cfg.WriteTimeout, 0), writeTimeout)

	params := map[string]string{
		"autocommit":               "1",
		"innodb_lock_wait_timeout": "1", // seconds that a batch waits for another transaction
		"sql_mode":                 "'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
		"time_zone":                "'+00:00'",
	}
	for name, value := range cfg.Params {
		if name = strings.ToLower(name); !slices.Contains(harmful, name) && params[name] == "" {
			params[name] = value
		}
	}
	cfg.Params = params
	return cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"), mysql.TimeTruncate(0))
}

// harmful lists session variables that are not taken from a DSN, besides those that ownSession sets. Each would change
// what is stored, found or committed.
var harmful = []string{
	"character_set_client", "character_set_connection", "character_set_results", "collation_connection",
	"completion_type", "insert_id", "sql_auto_is_null", "sql_safe_updates", "sql_select_limit", "timestamp",
	"transaction_read_only", "tx_read_only",
}
