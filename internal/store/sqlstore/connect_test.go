package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestParseDSNReadsEveryForm(t *testing.T) {
	here, err := filepath.Abs(".")
	must(t, err)
	for _, tt := range []struct{ dsn, want string }{
		{DefaultDSN, "sqlite:" + here + "/delaytask.db"},
		{"sqlite:/var/lib/tasks.db", "sqlite:/var/lib/tasks.db"},
		{"sqlite:///var/lib/tasks.db", "sqlite:/var/lib/tasks.db"},
		{"sqlite:with space %41#.db", "sqlite:" + here + "/with space %41#.db"},
		{"app:secret@tcp(db:3307)/tasks", "app@tcp(db:3307)/tasks"},
		{"app:se:c@r/et@tcp(db)/tasks?tls=skip-verify", "app@tcp(db:3306)/tasks"},
		{"app@unix(/run/mysqld.sock)/tasks", "app@unix(/run/mysqld.sock)/tasks"},
		{"/tasks", "tcp(127.0.0.1:3306)/tasks"},
		{"mysql://app:s%40cret%2F@db:3307/tasks", "app@tcp(db:3307)/tasks"},
		{"mysql://app@[::1]/tasks?timeout=2s", "app@tcp([::1]:3306)/tasks"},
		{"mysql:///tasks", "tcp(127.0.0.1:3306)/tasks"},
		{"mysql:secret@tcp(db:3306)/tasks", "mysql@tcp(db:3306)/tasks"},
	} {
		target, err := ParseDSN(tt.dsn)
		if err != nil {
			t.Errorf("%s: %v", tt.dsn, err)
			continue
		}
		if got := target.Redacted(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.dsn, got, tt.want)
		}
	}
}

func TestURLAndDriverFormMeanTheSame(t *testing.T) {
	fromURL, err1 := ParseDSN("mysql://app:s%40cret%2F@db:3307/tasks?tls=true&readTimeout=7s&wsrep_sync_wait=1")
	fromDSN, err2 := ParseDSN("app:s@cret/@tcp(db:3307)/tasks?tls=true&readTimeout=7s&wsrep_sync_wait=1")
	must(t, errors.Join(err1, err2))
	if got, want := fromURL.cfg.FormatDSN(), fromDSN.cfg.FormatDSN(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fromURL.cfg.TLS.ServerName, "db"; got != want {
		t.Errorf("the certificate is checked for %q, want %q", got, want)
	}
}

func TestParseDSNRefusesWithAReasonAndNoSecret(t *testing.T) {
	for _, tt := range []struct{ dsn, reason string }{
		{"", "empty"},
		{"sqlite:", "names no file"},
		{"sqlite::memory:", "lose accepted tasks"},
		{"sqlite://tasks.db", "relative path"},
		{"sqlite:tasks.db?mode=ro", "no parameters"},
		{"postgres://app:SECRET@db/tasks", "schemes"},
		{"app:SECRET@tcp(db)", "user:password@tcp(host:3306)/database"},
		{"app:SECRET@tcp(db:3306)/", "names no database"},
		{"app:SECRET@tcp(db/tasks", "user:password@tcp(host:3306)/database"},
		{"app:SECRET/SECRET%zz", "user:password@tcp(host:3306)/database"},
		{"mysql://app:SECRET#1@db/tasks", "percent-encoded"},
		{"mysql://app:SECRET%zz@db/tasks", "percent-encoded"},
		{"mysql://app:SECRET@db:port/tasks", "percent-encoded"},
		{"mysql://app:SECRET@db", "names no database"},
		{"app:SECRET@tcp(db)/tasks?parseTime=SECRET", "parseTime"},
		{"app:SECRET@tcp(db)/tasks?readTimeout=SECRET", "readTimeout"},
		{"app:SECRET@tcp(db)/tasks?strict=true", "parameter"},
		{"app:SECRET@tcp(db)/tasks?autocommit%3d0,sql_mode=1", "parameter"},
	} {
		_, err := ParseDSN(tt.dsn)
		switch {
		case !errors.Is(err, ErrInvalidDSN):
			t.Errorf("%s: got %v, want ErrInvalidDSN", tt.dsn, err)
		case !strings.Contains(err.Error(), tt.reason):
			t.Errorf("%s: %q does not say %q", tt.dsn, err, tt.reason)
		case strings.Contains(err.Error(), "SECRET"):
			t.Errorf("%s: %q shows the secret", tt.dsn, err)
		}
	}
}

func TestOwnSettingsWinOverTheDSN(t *testing.T) {
	target, err := ParseDSN("app@tcp(db)/tasks?parseTime=true&loc=America%2FNew_York&clientFoundRows=true" +
		"&multiStatements=true&interpolateParams=false&rejectReadOnly=false&checkConnLiveness=false&charset=latin1" +
		"&collation=latin1_bin&AutoCommit=0&sql_mode=%27ANSI_QUOTES%27&TIME_ZONE=%27-05:00%27" +
		"&innodb_lock_wait_timeout=50&insert_id=7&character_set_client=latin1&readTimeout=0s&writeTimeout=3s" +
		"&wsrep_sync_wait=1")
	must(t, err)
	const want = "app@tcp(db:3306)/tasks?charset=utf8mb4&collation=utf8mb4_bin&interpolateParams=true&readTimeout=30s" +
		"&rejectReadOnly=true&timeout=5s&writeTimeout=3s&maxAllowedPacket=0&autocommit=1&innodb_lock_wait_timeout=1" +
		"&sql_mode=%27STRICT_TRANS_TABLES%2CNO_ENGINE_SUBSTITUTION%27&time_zone=%27%2B00%3A00%27&wsrep_sync_wait=1"
	if got := target.cfg.FormatDSN(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if target.cfg.Loc != time.UTC {
		t.Errorf("loc is %v", target.cfg.Loc)
	}
}

func FuzzParseDSN(f *testing.F) {
	for _, seed := range []string{
		DefaultDSN, "sqlite:", "a:b@tcp(h:1)/d?x=1", "mysql://a:b@h:1/d?x=1", "a:b@unix(/s)/d", "/d?strict=1", "?",
		"/", "@/", "a:/b", "mysql://[::1]/d", "a@tcp(h)/d?timeout=1s&loc=UTC&charset=x,y", "mysql://a:%2f@h/%2f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dsn string) {
		target, err := ParseDSN(dsn)
		if err != nil {
			if !errors.Is(err, ErrInvalidDSN) {
				t.Fatalf("%q: %v is not ErrInvalidDSN", dsn, err)
			}
			return
		}
		if target.Kind() == MySQL {
			const secret = "fuzzed-secret"
			target.cfg.Passwd = secret
			if strings.Contains(fmt.Sprintf("%v %+v %#v %q", target, target, target, target), secret) {
				t.Fatalf("%q: the password shows", dsn)
			}
		}
		db, err := target.open(nil) // connects to nothing yet
		if err != nil {
			if !errors.Is(err, ErrInvalidDSN) {
				t.Fatalf("%q: %v is not ErrInvalidDSN", dsn, err)
			}
			return
		}
		_ = db.Close()
	})
}

func TestAnotherDatabaseOfTheServerIsReachedInTheSameWay(t *testing.T) {
	for dsn, want := range map[string]string{
		"user:p/w@tcp(host:3306)/db":                          "user@tcp(host:3306)/other",
		"mysql://user:p%2Fw@host/db?timeout=7s":               "user@tcp(host:3306)/other",
		"user:p/w@unix(/run/db.sock)/db?max_statement_time=1": "user@unix(/run/db.sock)/other",
	} {
		first, err := ParseDSN(dsn)
		must(t, err)
		other, err := ParseDSN(first.WithDatabase("other"))
		if err != nil || other.Redacted() != want {
			t.Errorf("%s gave %s, %v", dsn, other, err)
			continue
		}
		if first.cfg.DBName = "other"; first.cfg.FormatDSN() != other.cfg.FormatDSN() || other.cfg.Passwd != "p/w" {
			t.Errorf("%s: its settings are %s", dsn, other.cfg.FormatDSN())
		}
	}
}

func TestMySQLSessionIsOursWhateverTheDSNSays(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		d.DSN += "?charset=latin1&autocommit=0&time_zone=%27%2B09:00%27&sql_mode=%27ANSI_QUOTES%27" +
			"&parseTime=true&loc=Local"
		db, kind := connect(t, d)
		var got string
		must(t, db.GetContext(t.Context(), &got, "SELECT CONCAT_WS(' ', @@autocommit + 0, @@innodb_lock_wait_timeout,"+
			" @@sql_mode, @@time_zone, @@character_set_client, @@collation_connection)"))
		const want = "1 1 STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION +00:00 utf8mb4 utf8mb4_bin"
		if got != want || kind != MySQL {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	})
}

func TestSQLiteFileIsDurableAndWaitsForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space %41#.db")
	db, kind, err := Connect(t.Context(), "sqlite:"+path)
	must(t, err)
	defer db.Close()
	if kind != SQLite {
		t.Errorf("kind is %s", kind)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, error %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is not where it was asked for: %v", err)
	}
}

func TestSQLiteFilesAreTheirOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes")
	}
	fresh, old := filepath.Join(t.TempDir(), "new.db"), filepath.Join(t.TempDir(), "old.db")
	must(t, os.WriteFile(old, nil, 0o640))
	for file, want := range map[string]os.FileMode{fresh: 0o600, old: 0o640} {
		db, _, err := Connect(t.Context(), "sqlite:"+file)
		must(t, err)
		defer db.Close()
		must(t, one(db.ExecContext(t.Context(), "CREATE TABLE t (x)")))
		for _, name := range []string{file, file + "-wal", file + "-shm"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%v, %v, want %v", info, err, want)
			}
		}
	}
}

func TestConnectTellsWhatToDoAndNoPassword(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		change := func(f func(*mysql.Config)) string {
			cfg, err := mysql.ParseDSN(d.DSN)
			must(t, err)
			f(cfg)
			return cfg.FormatDSN()
		}
		for _, tt := range []struct{ name, dsn, hint string }{
			{"unknown database", change(func(c *mysql.Config) { c.DBName = "nowhere" }), hintDatabase},
			{"access denied", change(func(c *mysql.Config) { c.User, c.Passwd = "stranger", "SECRET" }), hintAccount},
			{"unknown variable", d.DSN + "?nonsense=1", hintVariable},
		} {
			wantConnectError(t, tt.name, tt.dsn, row.ClassOperator, tt.hint)
		}
	})
}

func TestConnectWithoutAServerTellsWhatToDo(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	_ = l.Close()
	wantConnectError(t, "refused", "app:SECRET@tcp("+addr+")/tasks", row.ClassNotApplied, "start the server")
	wantConnectError(t, "no socket", "app:SECRET@unix(/nowhere/s)/tasks", row.ClassNotApplied, "start the server")
	wantConnectError(t, "no host", "app:SECRET@tcp(nowhere.invalid)/tasks", row.ClassNotApplied, "cannot be resolved")
}

func TestConnectToAWrongFileTellsWhatToDo(t *testing.T) {
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "text.db")
	must(t, os.WriteFile(noDatabase, []byte(strings.Repeat("this is no database\n", 200)), 0o600))
	wantConnectError(t, "no folder", "sqlite:"+filepath.Join(dir, "no", "such.db"), row.ClassOperator, hintFile)
	wantConnectError(t, "no database", "sqlite:"+noDatabase, row.ClassOperator, "not a SQLite database")
}

func wantConnectError(t *testing.T, name, dsn string, class row.Class, hint string) {
	t.Helper()
	db, _, err := Connect(t.Context(), dsn)
	if err == nil {
		_ = db.Close()
		t.Errorf("%s: connected", name)
		return
	}
	e, ok := errors.AsType[*row.Error](err)
	if !ok || e.Class != class || !strings.Contains(e.Hint, hint) {
		t.Errorf("%s: got %v, want class %s and the hint %q", name, err, class, hint)
	}
	if strings.Contains(err.Error(), "SECRET") {
		t.Errorf("%s: %v shows the password", name, err)
	}
}

// goneConnector makes connections that end as those that a server has closed before.
type goneConnector struct {
	driver.Connector
	end error
}

func (c goneConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return goneConn{conn, c.end}, err
}

type goneConn struct {
	driver.Conn
	end error
}

func (c goneConn) Close() error { return errors.Join(c.Conn.Close(), c.end) }

func TestToDisconnectWhatTheServerHasClosedIsNoError(t *testing.T) {
	full := errors.New("the disk is full")
	for end, want := range map[error]error{driver.ErrBadConn: nil, mysql.ErrInvalidConn: nil, full: full} {
		dsn := "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
		ending := func(c driver.Connector) driver.Connector { return goneConnector{c, end} }
		db, _, err := Connect(t.Context(), dsn, ending)
		must(t, err)
		if err := Disconnect(db); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("connections end with %v: %v", end, err)
		}
	}
}
