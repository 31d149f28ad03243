// Package migrations creates and upgrades delaytask's tables. It is for delaytask itself: applications set
// Config.Migrate, run `delaytask migrate up`, or take the statements that `delaytask migrate sql` prints.
//
// There is one tree per kind of database. Both have the same numbers, and both end in the same tables and columns.
// Every migration may run twice: MySQL commits each DDL statement at once, so a process that dies in the middle leaves
// no half that the next run could not repeat. For the same reason a migration for MySQL is one statement; on SQLite,
// where DDL is transactional, it is one transaction.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/delaytask/delaytask/internal/sqlstore"
)

//go:embed mysql/*.sql sqlite/*.sql
var trees embed.FS

// Up applies what is missing. Any number of processes may call it at once; all of them succeed, and it changes nothing
// when there is nothing to do.
func Up(ctx context.Context, db *sql.DB, kind sqlstore.Kind) error {
	p, err := provider(db, kind)
	if err != nil {
		return err
	}
	err = again(ctx, func() error {
		_, err := p.Up(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// Down takes back the newest applied migration, and with it what is stored in the tables that it drops.
func Down(ctx context.Context, db *sql.DB, kind sqlstore.Kind) error {
	p, err := provider(db, kind)
	if err != nil {
		return err
	}
	if _, err := p.Down(ctx); err != nil && !errors.Is(err, goose.ErrNoNextVersion) {
		return fmt.Errorf("take back a migration: %w", err)
	}
	return nil
}

func provider(db *sql.DB, kind sqlstore.Kind) (*goose.Provider, error) {
	tree, err := tree(kind)
	if err != nil {
		return nil, err
	}
	versions, err := newVersions(kind)
	if err != nil {
		return nil, err
	}
	opts := []goose.ProviderOption{
		goose.WithStore(versions),
		goose.WithDisableGlobalRegistry(true), // the application may use goose for migrations of its own
		goose.WithLogger(goose.NopLogger()),
	}
	if kind == sqlstore.MySQL {
		opts = append(opts, goose.WithSessionLocker(&sessionLocker{}))
	}
	p, err := goose.NewProvider(goose.DialectCustom, db, tree, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

func tree(kind sqlstore.Kind) (fs.FS, error) {
	if kind != sqlstore.MySQL && kind != sqlstore.SQLite {
		return nil, fmt.Errorf("no migrations for databases of kind %s", kind)
	}
	return fs.Sub(trees, kind.String())
}
