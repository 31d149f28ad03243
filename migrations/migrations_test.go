package migrations_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/migrations"
	_ "github.com/delaytask/delaytask/sqlite"
)

// TestMain is also the process that only migrates: see processes_test.go.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(processDSN); dsn != "" {
		os.Exit(beProcess(dsn))
	}
	dbtest.Main(m)
}

func TestTenProcessesMigrateAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		d = d.Spread() // on a cluster no lock is common to all of them
		migrateAtOnce(t, d.DSN, 10)
		db, kind := connect(t, d)
		if n := pending(t, db, kind); n != 0 {
			t.Errorf("%d migrations are pending, want none", n)
		}
		var twice []int64
		const query = "SELECT version_id FROM delay_task_goose_version GROUP BY version_id HAVING COUNT(*) > 1"
		must(t, db.Select(&twice, query))
		if len(twice) != 0 {
			t.Errorf("migrations %v are noted twice", twice)
		}
	})
}

func TestUpAndDownGoStepByStepAndStatusSaysWhereTheyAre(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		steps := pending(t, db, kind)
		if tables := tablesOf(t, db, kind); steps == 0 || len(tables) != 0 {
			t.Errorf("of an empty database %d migrations are pending, and looking created %v", steps, tables)
		}
		up := func() (columnNames []string, notes []note) {
			t.Helper()
			missing, applied := pending(t, db, kind), 0
			must(t, migrations.UpEach(t.Context(), db.DB, kind, func() { applied++ }))
			if applied != missing {
				t.Errorf("%d of %d migrations were told", applied, missing)
			}
			if n := pending(t, db, kind); n != 0 {
				t.Errorf("%d migrations are pending after the way up, want none", n)
			}
			return columns(t, db, kind), notesOf(t, db)
		}
		wantColumns, wantNotes := up()
		gotColumns, gotNotes := up()
		if len(wantColumns) == 0 || !slices.Equal(gotColumns, wantColumns) {
			t.Errorf("columns\n%v\nand before\n%v", gotColumns, wantColumns)
		}
		if len(wantNotes) == 0 || !slices.Equal(gotNotes, wantNotes) {
			t.Errorf("notes of migrations %v, and before %v", gotNotes, wantNotes)
		}
		for step := range steps + 1 { // the last one finds nothing
			must(t, migrations.Down(t.Context(), db.DB, kind))
			if n, want := pending(t, db, kind), min(step+1, steps); n != want {
				t.Errorf("after %d steps down %d migrations are pending, want %d", step+1, n, want)
			}
		}
		if got, _ := up(); !slices.Equal(got, wantColumns) {
			t.Errorf("columns after the way down and up again\n%v\nand before\n%v", got, wantColumns)
		}
	})
}

func TestPrintedSQLMakesWhatUpMakes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		script := migrations.SQL(kind)
		if strings.Contains(script, "goose") || strings.Contains(script, "DROP TABLE") {
			t.Errorf("the script is not for a client:\n%s", script)
		}
		for range 2 { // a DBA may run it again
			for _, statement := range statements(script) {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%v in\n%s", err, statement)
				}
			}
		}
		want := columns(t, db, kind)
		must(t, migrations.Up(t.Context(), db.DB, kind))
		if got := columns(t, db, kind); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("Up makes %v, the script %v", got, want)
		}
	})
}

func TestBothTreesEndInTheSameColumns(t *testing.T) {
	embedded, kind := connect(t, dbtest.New(t, dbtest.SQLite))
	must(t, migrations.Up(t.Context(), embedded.DB, kind))
	want := columns(t, embedded, kind)
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		must(t, migrations.Up(t.Context(), db.DB, kind))
		if got := columns(t, db, kind); !slices.Equal(got, want) {
			t.Errorf("columns\n%v\nand on SQLite\n%v", got, want)
		}
	})
}

func TestTheViewNamesEachLateReason(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		must(t, migrations.Up(t.Context(), db.DB, kind))
		want := delaytask.LateReasons()
		for number := range want {
			_, err := db.Exec("INSERT INTO delay_task_message (id, tag, start_time, late_reason)"+
				" VALUES (?, 'a', '2026-11-01 00:00:00', ?)", number+1, number+1)
			must(t, err)
		}
		var got []delaytask.LateReason
		must(t, db.Select(&got, "SELECT COALESCE(late_reason, '') FROM delay_task_lateness ORDER BY id"))
		if !slices.Equal(got, want) {
			t.Errorf("the view has the reasons %q, want %q", got, want)
		}
	})
}

// note is a row of the table of applied migrations.
type note struct {
	ID        int64  `db:"id"`
	Version   int64  `db:"version_id"`
	IsApplied bool   `db:"is_applied"`
	At        string `db:"tstamp"`
}

func notesOf(t *testing.T, db *sqlx.DB) []note {
	t.Helper()
	var notes []note
	err := db.Select(&notes, "SELECT id, version_id, is_applied, tstamp FROM delay_task_goose_version ORDER BY id")
	must(t, err)
	return notes
}

// pending counts the migrations that are not applied.
func pending(t *testing.T, db *sqlx.DB, kind sqlstore.Kind) (n int) {
	t.Helper()
	states, err := migrations.Status(t.Context(), db.DB, kind)
	must(t, err)
	for _, s := range states {
		if !s.Applied {
			n++
		}
	}
	return n
}

func connect(t *testing.T, d dbtest.Database) (*sqlx.DB, sqlstore.Kind) {
	t.Helper()
	db, kind, err := sqlstore.Connect(t.Context(), d.DSN)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db, kind
}

func tablesOf(t *testing.T, db *sqlx.DB, kind sqlstore.Kind) []string {
	t.Helper()
	query := "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY name"
	if kind == sqlstore.SQLite {
		query = "SELECT name FROM sqlite_master" +
			" WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY name"
	}
	var names []string
	must(t, db.Select(&names, query))
	return names
}

// columns returns table.column of all our tables and views, but goose's.
func columns(t *testing.T, db *sqlx.DB, kind sqlstore.Kind) []string {
	t.Helper()
	query := "SELECT column_name AS name FROM information_schema.columns" +
		" WHERE table_schema = DATABASE() AND table_name = ?"
	if kind == sqlstore.SQLite {
		query = "SELECT name FROM pragma_table_xinfo(?)"
	}
	var all []string
	for _, table := range tablesOf(t, db, kind) {
		if strings.Contains(table, "_goose_") {
			continue
		}
		var names []string
		must(t, db.Select(&names, query, table))
		for _, name := range names {
			all = append(all, table+"."+name)
		}
	}
	slices.Sort(all)
	return all
}

// statements splits a script as a client does: at a semicolon that ends a line, outside of a trigger's body.
func statements(script string) []string {
	var all []string
	var current strings.Builder
	inBody := false
	for line := range strings.Lines(script) {
		current.WriteString(line)
		text := strings.TrimSpace(line)
		inBody = inBody && text != "END;" || text == "BEGIN"
		if strings.HasSuffix(text, ";") && !inBody {
			all = append(all, current.String())
			current.Reset()
		}
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
