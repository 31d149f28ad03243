package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// createTables runs the migration files as they are: package migrations imports this one.
func createTables(t *testing.T, db *sqlx.DB, kind Kind) {
	t.Helper()
	files, err := filepath.Glob("../../migrations/" + kind.String() + "/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migration files: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for statement := range strings.SplitSeq(up, "-- +goose Statement") {
			_, statement, _ = strings.Cut(statement, "\n")
			if strings.TrimSpace(statement) != "" {
				mustExec(t, db, statement)
			}
		}
	}
}
