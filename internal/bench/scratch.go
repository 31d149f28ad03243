package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/migrations"
)

// place is a server or a folder for scratch databases.
type place struct {
	target sqlstore.Target
	name   string // how the names of the databases of the run begin
	folder string // SQLite: of all files of the run
	made   int
}

const (
	scratchPrefix = "delaytask_bench_"
	leaveLimit    = time.Minute // for dropping a large table
)

// newPlace takes how the names of the databases begin.
func newPlace(dsn, name string) (*place, error) {
	target, err := sqlstore.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	p := &place{target: target, name: name}
	if !target.Kind().Embedded() {
		return p, nil
	}
	// Beside the named database: another disk may have another speed.
	beside := filepath.Dir(strings.TrimPrefix(target.Redacted(), "sqlite:"))
	if _, err := os.Stat(beside); err != nil {
		beside = os.TempDir()
	}
	if p.folder, err = os.MkdirTemp(beside, "delaytask-bench-"); err != nil {
		return nil, fmt.Errorf("make a folder for the databases of the benchmark; name a file in a folder that can "+
			"be written with --dsn sqlite:PATH: %w", err)
	}
	return p, nil
}

// ErrLeftBehind is returned by [Run], beside other errors, when a database that it made could not be dropped.
var ErrLeftBehind = errors.New("the benchmark leaves something behind")

// leave removes what dropping the databases leaves.
func (p *place) leave() error {
	if p.folder == "" {
		return nil
	}
	if err := os.RemoveAll(p.folder); err != nil {
		return fmt.Errorf("%w: remove %s by hand: %w", ErrLeftBehind, p.folder, err)
	}
	return nil
}

// database is a scratch database with the tables of delaytask in it.
type database struct {
	name string // or the file
	dsn  string
	kind sqlstore.Kind
	drop func() error
}

// onFresh gives f an empty database of its own and drops it, also when ctx has ended.
func (r *run) onFresh(ctx context.Context, f func(context.Context, *database) error) (err error) {
	db, err := r.place.create(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.drop()) }()
	if err := db.migrate(ctx); err != nil {
		return err
	}
	return f(ctx, db)
}

func (d *database) migrate(ctx context.Context) error {
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(ctx, pool.DB, d.kind), pool.Close())
}

// fresh makes a measurement of f, which gets an empty database of its own.
func fresh(f func(context.Context, *run, *database) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error { return f(ctx, r, d) })
	}
}

// onSameClock is fresh for a measurement of lateness, which is left out where the server has another clock.
func onSameClock(f func(context.Context, *run, *database) error) func(context.Context, *run) error {
	return fresh(func(ctx context.Context, r *run, d *database) error {
		if err := d.sameClock(ctx); err != nil {
			return err
		}
		return f(ctx, r, d)
	})
}

func (p *place) create(ctx context.Context) (*database, error) {
	p.made++
	name := fmt.Sprintf("%s_%d", p.name, p.made)
	if p.folder != "" {
		file := filepath.Join(p.folder, name+".db")
		drop := func() error {
			var errs []error
			for _, part := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(file + part); !errors.Is(err, os.ErrNotExist) {
					errs = append(errs, err)
				}
			}
			return errors.Join(errs...)
		}
		return &database{file, "sqlite:" + file, sqlstore.SQLite, drop}, nil
	}
	if err := p.execute(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, creating(err)
	}
	drop := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
		defer cancel()
		if err := p.execute(ctx, "DROP DATABASE "+name); err != nil {
			return fmt.Errorf("%w: drop the database %s by hand: %w", ErrLeftBehind, name, err)
		}
		return nil
	}
	return &database{name, p.target.WithDatabase(name), sqlstore.MySQL, drop}, nil
}

// existing is a database that an earlier run has kept. Nothing drops it.
func (p *place) existing(name string) (*database, error) {
	d := &database{name, p.target.WithDatabase(name), p.target.Kind(), func() error { return nil }}
	if d.kind.Embedded() {
		if _, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("open the database that was kept: %w", err)
		}
		d.dsn = "sqlite:" + name
	}
	return d, nil
}

// execute runs a statement about databases. It connects to information_schema, which every server has: the named
// database may be missing.
func (p *place) execute(ctx context.Context, statement string) error {
	db, _, err := sqlstore.Connect(ctx, p.target.WithDatabase("information_schema"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// creating adds advice to an error about missing rights.
func creating(err error) error {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	if ok && (refused.Number == 1044 || refused.Number == 1142 || refused.Number == 1227) {
		return fmt.Errorf("the benchmark works in databases of its own, which this user may not create;"+
			" as an administrator: GRANT ALL ON `%s%%`.* TO that user: %w",
			strings.ReplaceAll(scratchPrefix, "_", `\_`), err)
	}
	return fmt.Errorf("create a database for the benchmark: %w", err)
}

// connect opens a pool of up to n connections that stay open. A SQLite file has one writer, and so one connection:
// writers that wait for each other there sleep and look again.
func (d *database) connect(ctx context.Context, n int) (*sqlx.DB, error) {
	pool, kind, err := sqlstore.Connect(ctx, d.dsn)
	if err != nil {
		return nil, err
	}
	if kind == sqlstore.SQLite {
		n = 1
	}
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool, nil
}

// withScheduler opens a scheduler on the database for the time of f. What cfg leaves out has its default.
func (r *run) withScheduler(
	ctx context.Context, d *database, cfg delaytask.Config, f func(context.Context, *delaytask.Scheduler) error,
) (err error) {
	cfg.Logger = r.Logger
	s, err := delaytask.Open(ctx, d.dsn, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	return f(ctx, s)
}
