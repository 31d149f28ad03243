package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// State says whether a migration is applied.
type State struct {
	Version int64
	Name    string // file name
	Applied bool
}

// Status lists all migrations by version. It changes nothing and needs only the right to read.
func Status(ctx context.Context, db *sql.DB, kind sqlstore.Kind) ([]State, error) {
	files, err := files(kind)
	if err != nil {
		return nil, err
	}
	applied, err := applied(ctx, db, kind)
	if err != nil {
		return nil, fmt.Errorf("read which migrations are applied: %w", err)
	}
	states := make([]State, len(files))
	for i, name := range files {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		states[i] = State{Version: version, Name: name, Applied: applied[version]}
	}
	return states, nil
}

// Remake says how to make again what was removed by hand from tables whose migrations are noted as applied.
func Remake(kind sqlstore.Kind) string {
	return "run what is missing of the statements that this prints: delaytask migrate sql --for " + kind.String()
}

func files(kind sqlstore.Kind) ([]string, error) {
	tree, err := tree(kind)
	if err != nil {
		return nil, err
	}
	return fs.Glob(tree, "*.sql")
}

func applied(ctx context.Context, db *sql.DB, kind sqlstore.Kind) (map[int64]bool, error) {
	versions, err := newVersions(kind)
	if err != nil {
		return nil, err
	}
	exists, err := versions.TableExists(ctx, db)
	if err == nil && !exists {
		err = denied(ctx, db)
	}
	if err != nil || !exists {
		return nil, err
	}
	found, err := versions.ListMigrations(ctx, db)
	if err != nil {
		return nil, err
	}
	applied := make(map[int64]bool, len(found))
	for _, m := range found {
		applied[m.Version] = true
	}
	return applied, nil
}

// denied returns an error when the account may not read the table of versions. A server hides the table then.
func denied(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT 1 FROM "+versionTable+" WHERE 1 = 0").Scan(&n)
	if sqlstore.IsDenied(err) {
		return err
	}
	return nil
}
