package scheduler

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/migrations"
)

// Open connects to the database that dsn names and returns a scheduler that can save tasks; [Scheduler.Start] lets it
// run them. Stop closes the connections.
//
//	sqlite:PATH                                  an embedded database, created and migrated as needed; import package
//	                                             sqlite for it
//	user:password@tcp(host:3306)/database        MySQL or MariaDB, as in go-sql-driver/mysql
//	mysql://user:password@host:3306/database     the same as a URL
//
// An error says in one sentence what is wrong and, if it can be mended, how. Dangerous settings, such as a server that
// may lose commits when its machine fails, are logged. Neither shows passwords.
func Open(ctx context.Context, dsn string, cfg Config) (*Scheduler, error) {
	cfg, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	db, kind, err := sqlstore.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("delaytask: %w", err)
	}
	cfg.Migrate = cfg.Migrate || kind.Embedded()
	target, err := sqlstore.ParseDSN(dsn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("delaytask: %w", err), db.Close())
	}
	s, err := onDatabase(ctx, db, kind, cfg, target.Host(), func() error { return sqlstore.Disconnect(db) })
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// New is Open on the application's own pool. The pool keeps its settings and stays open after Stop. Some of its
// connections are reserved until then. On MySQL and MariaDB saves need 6 connections: a smaller pool is refused.
// Processors need 2 and one for each task that runs at once ([Config.Concurrency]), at least 6 and at most 22: on a
// smaller pool Register is refused. Each error says the number that is needed.
func New(ctx context.Context, db *sql.DB, cfg Config) (*Scheduler, error) {
	cfg, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if st, build := core.Built(&cfg.builder); build != nil {
		release := func(context.Context) error { return nil }
		return withEngine(&cfg, cfg.engineConfig(st), build, release, func() error { return nil })
	}
	if db == nil {
		return nil, fmt.Errorf("%w: the database is nil", ErrInvalidConfig)
	}
	kind, err := sqlstore.KindOf(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("delaytask: %w", err)
	}
	return onDatabase(ctx, sqlx.NewDb(db, kind.String()), kind, cfg, "", func() error { return nil })
}

// prepare checks what can be checked before anything is opened.
func prepare(ctx context.Context, cfg Config) (Config, error) {
	if ctx == nil {
		return cfg, delaytask.ErrNilContext
	}
	cfg = cfg.withDefaults()
	return cfg, cfg.check()
}

func onDatabase(
	ctx context.Context, db *sqlx.DB, kind sqlstore.Kind, cfg Config, host string, closeDB func() error,
) (*Scheduler, error) {
	if cfg.Migrate && (!cfg.ReadOnly || kind.Embedded()) {
		if err := migrations.Up(ctx, db.DB, kind); err != nil {
			return nil, fmt.Errorf("delaytask: %w", err)
		}
	}
	st := sqlstore.NewFor(db, kind, cfg.Concurrency)
	if err := check(ctx, st, cfg); err != nil {
		return nil, errors.Join(err, st.Close(ctx))
	}
	built := cfg.engineConfig(st)
	roomToRun := st.RoomToRun
	if cfg.ReadOnly {
		built.Store, built.Metrics = store.ReadOnly(st), metrics.None
		roomToRun = func() error { return ErrReadOnly }
	}
	if st.HasFileVersion() {
		built.FileVersion = st.FileVersion
	}
	if !kind.Embedded() && !cfg.ReadOnly {
		built.Waker = cfg.waker(host)
	}
	build := func(built engine.Config) (*engine.Engine, error) { return engine.New(ctx, built) }
	release := func(ctx context.Context) error { return errors.Join(st.Close(ctx), closeDB()) }
	s, err := withEngine(&cfg, built, build, release, roomToRun)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("delaytask: %w", err), st.Close(ctx))
	}
	return s, nil
}

func withEngine(
	cfg *Config, built engine.Config, build func(engine.Config) (*engine.Engine, error),
	release func(context.Context) error, roomToRun func() error,
) (*Scheduler, error) {
	e, err := build(built)
	if err != nil {
		return nil, err
	}
	of := cfg.coreConfig()
	of.Engine, of.Built, of.Release, of.RoomToRun = e, built, release, roomToRun
	return newScheduler(core.New(of)), nil
}

// check refuses an unusable database and logs dangerous settings of a usable one.
func check(ctx context.Context, st *sqlstore.Store, cfg Config) error {
	warnings, err := st.Check(ctx, cfg.BodyLimit)
	if err != nil && cfg.ReadOnly { // it may be about writes
		warnings, err = nil, st.CheckReads(ctx)
	}
	if err != nil {
		return fmt.Errorf("delaytask: %w", err)
	}
	if !cfg.OnReplica && !cfg.ReadOnly {
		if err := sqlstore.Inspect(st).RefuseReplica(ctx, cluster.IsAlive); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		cfg.Logger.Warn("the database works, but not as well as it should", "warning", w.String())
	}
	return nil
}

// waker carries the wake-ups of a process that reaches its database at the host, "" where that is not known.
func (c *Config) waker(host string) *wake.Endpoint {
	process := cluster.NewProcess()
	recorder := metrics.None
	if c.Metrics != nil {
		recorder = c.Metrics.Recorder()
	}
	return wake.New(wake.Config{
		Listen: c.Wake, Database: host, Host: process.Host, Name: cmp.Or(c.NodeName, process.Name),
		Log: c.Logger, Metrics: recorder,
	})
}
