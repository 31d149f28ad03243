package sqlstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store/sqlstore/sqlitedriver"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func init() { RegisterSQLite(sqlitedriver.NewConnector) }

func TestMain(m *testing.M) { dbtest.Main(m) }

func connect(t *testing.T, d dbtest.Database) (*sqlx.DB, Kind) {
	t.Helper()
	db, kind, err := Connect(t.Context(), d.DSN)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	asked, err := KindOf(t.Context(), db.DB)
	if asked != kind || err != nil || kind.Embedded() != (d.Kind == dbtest.SQLite) {
		t.Fatalf("the pool of a database of kind %s leads to %s, %v", kind, asked, err)
	}
	return db, kind
}

// migrated connects to a database and runs the migration files as they are: package migrations imports this one.
func migrated(t *testing.T, d dbtest.Database) (*sqlx.DB, Kind) {
	t.Helper()
	db, kind := connect(t, d)
	files, err := filepath.Glob("../../../migrations/" + kind.String() + "/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migration files: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		if kind == SQLite {
			mustExec(t, db, up) // takes several statements
			continue
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(up), ";\n\n") {
			mustExec(t, db, statement)
		}
	}
	return db, kind
}

func mustExec(t *testing.T, db *sqlx.DB, statement string) {
	t.Helper()
	must(t, one(db.ExecContext(t.Context(), statement)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one[A any](_ A, err error) error { return err }

func two[A, B any](_ A, _ B, err error) error { return err }
