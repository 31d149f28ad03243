package sqlstore

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func TestMySQLSessionIsOursWhateverTheDSNSays(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		d.DSN += "?charset=latin1&autocommit=0&time_zone=%27%2B09:00%27&sql_mode=%27ANSI_QUOTES%27&parseTime=true&loc=Local"
		db, kind := connect(t, d)
		if kind != MySQL {
			t.Errorf("kind is %s", kind)
		}
		var got struct {
			Autocommit, LockWait           int
			Mode, Zone, Charset, Collation string
		}
		err := db.QueryRowContext(t.Context(), `SELECT @@autocommit, @@innodb_lock_wait_timeout, @@sql_mode, @@time_zone,
			@@character_set_client, @@collation_connection`).
			Scan(&got.Autocommit, &got.LockWait, &got.Mode, &got.Zone, &got.Charset, &got.Collation)
		if err != nil {
			t.Fatal(err)
		}
		want := got
		want.Autocommit, want.LockWait, want.Zone, want.Charset, want.Collation = 1, 1, "+00:00", "utf8mb4", "utf8mb4_bin"
		want.Mode = "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestSQLiteFileIsDurableAndWaitsForOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space %41#.db")
	db, kind, err := Connect(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(old, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]os.FileMode{fresh: 0o600, old: 0o640} {
		db, _, err := Connect(t.Context(), "sqlite:"+file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (x)"); err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			f(cfg)
			return cfg.FormatDSN()
		}
		for _, tt := range []struct{ name, dsn, hint string }{
			{"unknown database", change(func(c *mysql.Config) { c.DBName = "nowhere" }), hintDatabase},
			{"access denied", change(func(c *mysql.Config) { c.User, c.Passwd = "stranger", "SECRET" }), hintAccount},
			{"unknown variable", change(func(c *mysql.Config) { c.Params = map[string]string{"nonsense": "1"} }), hintVariable},
		} {
			wantConnectError(t, tt.name, tt.dsn, row.ClassOperator, tt.hint)
		}
	})
}

func TestConnectToNobodyTellsWhatToDo(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	wantConnectError(t, "refused", "app:SECRET@tcp("+addr+")/tasks", row.ClassNotApplied, "start the server")
	wantConnectError(t, "no socket", "app:SECRET@unix(/nowhere/s)/tasks", row.ClassNotApplied, "start the server")
	wantConnectError(t, "no host", "app:SECRET@tcp(nowhere.invalid)/tasks", row.ClassNotApplied, "cannot be resolved")
}

func TestConnectToAWrongFileTellsWhatToDo(t *testing.T) {
	dir := t.TempDir()
	noDatabase := filepath.Join(dir, "text.db")
	if err := os.WriteFile(noDatabase, []byte(strings.Repeat("this is no database\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
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
