package sqlstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseDSNReadsEveryForm(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
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
	target, err := ParseDSN("app@tcp(db)/tasks?parseTime=true&loc=America%2FNew_York&clientFoundRows=true&multiStatements=true" +
		"&interpolateParams=false&rejectReadOnly=false&checkConnLiveness=false&charset=latin1&collation=latin1_bin" +
		"&AutoCommit=0&sql_mode=%27ANSI_QUOTES%27&TIME_ZONE=%27-05:00%27&innodb_lock_wait_timeout=50&insert_id=7" +
		"&character_set_client=latin1&readTimeout=0s&writeTimeout=3s&wsrep_sync_wait=1")
	if err != nil {
		t.Fatal(err)
	}
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
		DefaultDSN, "sqlite:", "a:b@tcp(h:1)/d?x=1", "mysql://a:b@h:1/d?x=1", "a:b@unix(/s)/d", "/d?strict=1", "?", "/", "@/",
		"a:/b", "mysql://[::1]/d", "a@tcp(h)/d?timeout=1s&loc=UTC&charset=x,y", "mysql://a:%2f@h/%2f",
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
		db, err := target.open() // connects to nothing yet
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
		if err != nil {
			t.Fatal(err)
		}
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
