// Package migrations creates and upgrades delaytask's tables. It is for delaytask itself: applications set
// Config.Migrate, run `delaytask migrate up`, or take the statements that `delaytask migrate sql` prints.
//
// There is one tree per kind of database. Both have the same numbers, and both end in the same tables and columns.
// Every statement may run twice, so that the next run can repeat what a killed process has left half done: MySQL
// commits each DDL statement at once. On SQLite, where DDL is transactional, a migration is one transaction.
package migrations

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

//go:embed mysql/*.sql sqlite/*.sql
var trees embed.FS

// Up applies what is missing. Any number of processes may call it at once, and all succeed. It changes nothing when
// nothing is missing.
func Up(ctx context.Context, db *sql.DB, kind sqlstore.Kind) error {
	return UpEach(ctx, db, kind, func() {})
}

// UpEach is [Up], and calls applied after each migration.
func UpEach(ctx context.Context, db *sql.DB, kind sqlstore.Kind, applied func()) error {
	if err := sqlstore.RefuseSharded(ctx, db, kind); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	err := again(ctx, func() error {
		p, err := provider(db, kind, applied) // a new one each time: it tries to make the table of versions once
		if err != nil {
			return err
		}
		_, err = p.Up(ctx)
		return orReadOnly(ctx, db, kind, err)
	})
	const lockWait = 1205
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == lockWait {
		return fmt.Errorf("migrate the database: %w; %s", err, sqlstore.AwaitLock)
	}
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// Down reverts the newest applied migration. The rows of the tables that it drops are lost.
func Down(ctx context.Context, db *sql.DB, kind sqlstore.Kind) error {
	p, err := provider(db, kind, nil)
	if err != nil {
		return err
	}
	if _, err := p.Down(ctx); err != nil && !errors.Is(err, goose.ErrNoNextVersion) {
		return fmt.Errorf("take back a migration: %w", orReadOnly(ctx, db, kind, err))
	}
	return nil
}

// orReadOnly returns err, or instead that the server takes no writes.
func orReadOnly(ctx context.Context, db *sql.DB, kind sqlstore.Kind, err error) error {
	if err == nil {
		return nil
	}
	if refused := sqlstore.CheckWritable(ctx, db, kind); errors.Is(refused, sqlstore.ErrReadOnly) {
		return refused
	}
	return err
}

func provider(db *sql.DB, kind sqlstore.Kind, applied func()) (*goose.Provider, error) {
	tree, err := tree(kind)
	if err != nil {
		return nil, err
	}
	versions, err := newVersions(kind)
	if err != nil {
		return nil, err
	}
	versions.applied = applied
	opts := []goose.ProviderOption{
		goose.WithStore(versions),
		goose.WithDisableGlobalRegistry(true), // the application may use goose for its own migrations
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

// SQL returns the statements that create all tables, for a DBA to read or to run in a client. They may run twice, and
// [Up] afterwards only notes them as applied. SQL returns "" for an unknown kind.
func SQL(kind sqlstore.Kind) string {
	names, err := files(kind)
	if err != nil {
		return ""
	}
	var out strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(trees, kind.String()+"/"+name)
		if err != nil {
			return "" // embedded files can be read
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		out.WriteString("-- " + name + "\n")
		for line := range strings.Lines(up) {
			if !strings.HasPrefix(line, "-- +goose") {
				out.WriteString(line)
			}
		}
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// mostTries bounds the runs of the migrations: a few more than ten processes on three members of a cluster needed.
const mostTries = 8

// again runs the migrations until they do not collide with another process. On a cluster one member alone knows a lock,
// so processes do migrate at the same time there. Each statement may run twice.
func again(ctx context.Context, up func() error) error {
	for tries := 1; ; tries++ {
		err := up()
		if err == nil || tries == mostTries || !collided(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(tries) * 100 * time.Millisecond)):
		}
	}
}

// collided reports whether another process migrated at the same time. A cluster member reports that in many ways, or
// closes the connection.
func collided(err error) bool {
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		return true
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains([]uint16{
		1020, // the row changed meanwhile
		1047, // the member is not ready
		1050, // the table is there already
		1062, // the migration is noted already
		1146, // the table is not there yet
		1180, // an error during COMMIT
		1205, // lock wait timeout
		1213, // deadlock, or a conflict at certification
		1412, // the table's definition changed
		1467, // no next number: the table was replaced meanwhile
		1684, // another statement changes the table
		3101, // rolled back at certification
	}, e.Number)
}
