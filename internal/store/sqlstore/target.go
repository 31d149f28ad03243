package sqlstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// DefaultDSN names an embedded database in the working directory. It needs no server.
const DefaultDSN = "sqlite:delaytask.db"

// ErrInvalidDSN is wrapped by every error of [ParseDSN].
var ErrInvalidDSN = errors.New("invalid DSN")

// Target is a database that a DSN names. Printing it never shows a password.
type Target struct {
	kind Kind
	file string        // SQLite: absolute path
	cfg  *mysql.Config // MySQL: with the settings of ownSession
}

// ParseDSN reads one of
//
//	sqlite:PATH                                  an embedded database; takes no parameters
//	user:password@tcp(host:3306)/database        as in go-sql-driver/mysql, with its parameters
//	mysql://user:password@host:3306/database     special characters of the password percent-encoded
//
// ParseDSN overrides parameters that would change what is stored or how failures look (parseTime, loc, charset,
// sql_mode, …). No error repeats a part of the DSN that may hold the password.
func ParseDSN(dsn string) (Target, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch {
	case dsn == "":
		return Target{}, fmt.Errorf("%w: it is empty; the embedded database is %s", ErrInvalidDSN, DefaultDSN)
	case scheme == "sqlite":
		return parseSQLite(rest)
	case scheme == "mysql" && strings.HasPrefix(rest, "//"):
		return parseURL(dsn)
	case strings.HasPrefix(rest, "//"):
		return Target{}, fmt.Errorf("%w: only sqlite: and mysql:// are known schemes", ErrInvalidDSN)
	}
	cfg, err := driverConfig(dsn)
	if err != nil {
		return Target{}, err
	}
	return mysqlTarget(cfg)
}

// Kind returns which SQL dialect the database speaks.
func (t Target) Kind() Kind { return t.kind }

// Host returns the host that the database is reached at, "" for an embedded one. A socket's is loopback.
func (t Target) Host() string {
	if t.kind == SQLite {
		return ""
	}
	host, _, err := net.SplitHostPort(t.cfg.Addr)
	if err != nil {
		return "127.0.0.1"
	}
	return host
}

// Redacted names the database without password and parameters, for logs and errors.
func (t Target) Redacted() string {
	switch {
	case t.kind == SQLite:
		return "sqlite:" + t.file
	case t.cfg == nil:
		return ""
	case t.cfg.User == "":
		return fmt.Sprintf("%s(%s)/%s", t.cfg.Net, t.cfg.Addr, t.cfg.DBName)
	default:
		return fmt.Sprintf("%s@%s(%s)/%s", t.cfg.User, t.cfg.Net, t.cfg.Addr, t.cfg.DBName)
	}
}

// WithDatabase returns the DSN of another database on the same server, with the same user and parameters. It holds the
// password. An embedded database has no server: WithDatabase returns its own DSN.
func (t Target) WithDatabase(name string) string {
	if t.kind == SQLite {
		return t.Redacted()
	}
	cfg := t.cfg.Clone()
	cfg.DBName = name
	return cfg.FormatDSN()
}

func (t Target) String() string { return t.Redacted() }

// GoString keeps %#v from printing the driver's configuration.
func (t Target) GoString() string { return t.Redacted() }

func parseSQLite(path string) (Target, error) {
	switch {
	case path == "":
		return Target{}, fmt.Errorf("%w: sqlite: names no file, as in %s", ErrInvalidDSN, DefaultDSN)
	case strings.HasPrefix(path, ":memory:"):
		return Target{}, fmt.Errorf("%w: a database in memory would lose accepted tasks; name a file", ErrInvalidDSN)
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return Target{}, fmt.Errorf("%w: write sqlite:PATH without slashes before a relative path", ErrInvalidDSN)
	case strings.ContainsAny(path, "?\x00"):
		return Target{}, fmt.Errorf("%w: sqlite:PATH takes no parameters", ErrInvalidDSN)
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %w", ErrInvalidDSN, err)
	}
	return Target{kind: SQLite, file: file}, nil
}

// parseURL never wraps the error of url.Parse: that error repeats the URL, password included.
func parseURL(dsn string) (Target, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Fragment != "" {
		return Target{}, fmt.Errorf("%w: want mysql://user:password@host:3306/database, "+
			"special characters of the password percent-encoded", ErrInvalidDSN)
	}
	host := u.Host
	switch {
	case u.Hostname() == "" && u.Port() == "":
		host = "127.0.0.1:3306"
	case u.Port() == "":
		host = net.JoinHostPort(u.Hostname(), "3306")
	}
	cfg, err := driverConfig("tcp(" + host + ")/?" + u.RawQuery)
	if err != nil {
		return Target{}, err
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	return mysqlTarget(cfg)
}

func mysqlTarget(cfg *mysql.Config) (Target, error) {
	if cfg.DBName == "" {
		return Target{}, fmt.Errorf("%w: it names no database, as in /delaytask at its end", ErrInvalidDSN)
	}
	if err := ownSession(cfg); err != nil {
		return Target{}, err
	}
	return Target{kind: MySQL, cfg: cfg}, nil
}

// driverConfig parses the driver's form of a DSN. It does not pass on the driver's errors. They can repeat what the
// driver takes for a database name or a parameter: part of the password, when a slash in it is not escaped.
func driverConfig(dsn string) (*mysql.Config, error) {
	slash := strings.LastIndexByte(dsn, '/')
	_, params, _ := strings.Cut(dsn[slash+1:], "?")
	for param := range strings.SplitSeq(params, "&") {
		name, _, found := strings.Cut(param, "=")
		if !found {
			continue
		}
		if !parameterName.MatchString(name) || name == "strict" { // the driver panics on this one
			return nil, fmt.Errorf("%w: a parameter after the question mark"+
				" is not one of the driver's or a session variable", ErrInvalidDSN)
		}
		if _, err := mysql.ParseDSN("/?" + param); err != nil {
			return nil, fmt.Errorf("%w: the value of parameter %s is not valid", ErrInvalidDSN, name)
		}
	}
	if slash >= 0 {
		if cfg, err := mysql.ParseDSN(dsn); err == nil {
			return cfg, nil
		}
	}
	return nil, fmt.Errorf("%w: want user:password@tcp(host:3306)/database, mysql://… or sqlite:PATH", ErrInvalidDSN)
}

// parameterName keeps SQL out of the name of a session variable, which the driver copies into a SET statement.
var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
