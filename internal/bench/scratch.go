package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/migrations"
	"github.com/delaytask/delaytask/scheduler"
)

// Prefix is how the names of the databases begin that a run makes.
const Prefix = "delaytask_bench_"

// ErrLeftBehind is returned by [Run], beside other errors, when a database that it made could not be dropped.
var ErrLeftBehind = errors.New("the benchmark leaves something behind")

// Database has the tables of delaytask.
type Database struct {
	Name string // or the file
	DSN  string
	Kind sqlstore.Kind
	drop func() error
}

// OnFresh gives f an empty database of its own, and drops it.
func (o Options) OnFresh(ctx context.Context, f func(context.Context, *Database) error) (err error) {
	d, err := o.Create(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Drop()) }()
	return f(ctx, d)
}

// Create makes an empty database beside the one that the options name: for a file, another disk may have another speed.
func (o Options) Create(ctx context.Context) (*Database, error) {
	target, err := sqlstore.ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	d := &Database{Name: Prefix + strings.ToLower(rand.Text()[:10]), Kind: target.Kind()}
	if d.Kind.Embedded() {
		folder, err := os.MkdirTemp(filepath.Dir(strings.TrimPrefix(target.Redacted(), "sqlite:")), "delaytask-bench-")
		if err != nil {
			return nil, fmt.Errorf("name a file in a folder that can be written with --dsn sqlite:PATH: %w", err)
		}
		d.Name = filepath.Join(folder, d.Name+".db")
		d.DSN, d.drop = "sqlite:"+d.Name, func() error { return os.RemoveAll(folder) }
	} else {
		server, _, err := sqlstore.Connect(ctx, target.WithDatabase("information_schema")) // every server has it
		if err != nil {
			return nil, err
		}
		if _, err := server.ExecContext(ctx, "CREATE DATABASE "+d.Name); err != nil {
			_ = server.Close()
			return nil, fmt.Errorf("create a database, which wants GRANT ALL ON `%s%%`.* TO the user: %w",
				strings.ReplaceAll(Prefix, "_", `\_`), err)
		}
		d.DSN, d.drop = target.WithDatabase(d.Name), func() error {
			defer server.Close()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // a large table takes long
			defer cancel()
			_, err := server.ExecContext(ctx, "DROP DATABASE "+d.Name)
			return err
		}
	}
	pool, err := d.Connect(ctx, 1)
	if err == nil {
		err = errors.Join(migrations.Up(ctx, pool.DB, d.Kind), pool.Close())
	}
	if err != nil {
		return nil, errors.Join(err, d.Drop())
	}
	return d, nil
}

// Drop drops what Create has made, also when the context of Create has ended. Its error is [ErrLeftBehind].
func (d *Database) Drop() error {
	if err := d.drop(); err != nil {
		return fmt.Errorf("%w: drop %s by hand: %w", ErrLeftBehind, d.Name, err)
	}
	return nil
}

// Connect opens a pool of n connections that stay open. A SQLite file has one writer, and so one connection: writers
// that wait for each other there sleep and look again.
func (d *Database) Connect(ctx context.Context, n int) (*sqlx.DB, error) {
	pool, kind, err := sqlstore.Connect(ctx, d.DSN)
	if err != nil {
		return nil, err
	}
	if kind.Embedded() {
		n = 1
	}
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool, nil
}

// OnScheduler opens a scheduler while f runs.
func (d *Database) OnScheduler(
	ctx context.Context, cfg scheduler.Config, f func(*scheduler.Scheduler) error,
) (err error) {
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	s, err := scheduler.Open(ctx, d.DSN, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	return f(s)
}
