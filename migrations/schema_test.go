package migrations_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/golden"
	"github.com/delaytask/delaytask/migrations"
)

// The files show what all migrations together make: tables, columns, defaults, collations, indexes, views and triggers.
func TestMigrationsMakeTheSchemaOfTheFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		db, kind := connect(t, d)
		must(t, migrations.Up(t.Context(), db.DB, kind))
		name := map[dbtest.Kind]dbtest.Kind{dbtest.Galera: dbtest.MariaDB, dbtest.Group: dbtest.MySQL}[d.Kind]
		if name == "" {
			name = d.Kind
		}
		golden.Check(t, "testdata/schema."+string(name)+".sql", strings.Join(schema(t, db, kind), "\n\n")+"\n")
	})
}

// schema returns the statements that make the schema anew, as the database tells them.
func schema(t *testing.T, db *sqlx.DB, kind sqlstore.Kind) (made []string) {
	t.Helper()
	if kind == sqlstore.SQLite {
		const query = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND tbl_name LIKE 'delay_task_%'" +
			" AND tbl_name NOT LIKE '%_goose_%' ORDER BY tbl_name, type DESC, name"
		must(t, db.Select(&made, query))
		for i, text := range made {
			made[i] = plain(text)
		}
		return made
	}
	var database string
	must(t, db.Get(&database, "SELECT DATABASE()"))
	for _, table := range tablesOf(t, db, kind) {
		if strings.Contains(table, "_goose_") {
			continue
		}
		answer := map[string]any{}
		must(t, db.QueryRowx("SHOW CREATE TABLE "+table).MapScan(answer))
		for _, column := range []string{"Create Table", "Create View"} {
			if text, ok := answer[column]; ok {
				made = append(made, plain(strings.ReplaceAll(fmt.Sprintf("%s", text), "`"+database+"`.", "")))
			}
		}
	}
	return made
}

var (
	comment = regexp.MustCompile(` *-- .*`)
	account = regexp.MustCompile("DEFINER=`[^`]*`@`[^`]*` ")
	space   = regexp.MustCompile(`\s+`)
	padding = regexp.MustCompile(` ?([(),]) ?`)
	null    = regexp.MustCompile(`(TEXT|INTEGER|BLOB) NULL`)
	column  = regexp.MustCompile(`([,(])(\w+ (?:TEXT|INTEGER|BLOB))`)
)

// plain leaves out what a database keeps of a statement without a meaning, and who ran it.
func plain(text string) string {
	text = account.ReplaceAllString(comment.ReplaceAllString(text, ""), "")
	if strings.Contains(text, "`") {
		return text // MySQL lays out statements itself
	}
	text = padding.ReplaceAllString(space.ReplaceAllString(text, " "), "$1")
	return column.ReplaceAllString(null.ReplaceAllString(text, "$1"), "$1\n  $2")
}
