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

// SQL returns the statements that create everything from nothing, for a DBA to read or to run in a client. Running them
// twice is harmless, and [Up] afterwards only takes note of them. It returns "" for an unknown kind.
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

// mostTries is how often the migrations are run: as often as ten processes on three members of a cluster needed, and a
// few more.
const mostTries = 8

// again runs the migrations until none of them meets those of another process. On a cluster the lock of one member is
// unknown to the others, so processes do migrate at the same time there. Each migration is one statement that may run
// twice.
func again(ctx context.Context, up func() error) error {
	for tries := 1; ; tries++ {
		err := up()
		if err == nil || tries == mostTries || !crossed(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Duration(tries) * 100 * time.Millisecond)):
		}
	}
}

// crossed reports whether another process was in the way. A member that another one's DDL overtakes says so in many
// ways, or cuts the connection.
func crossed(err error) bool {
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
