package role

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/history"
	"github.com/delaytask/delaytask/processor"
)

// openEvery is how often a process tries to begin while the database is away.
const openEvery = 300 * time.Millisecond

// open waits for a database that is away. The caller stops the scheduler before it calls release.
func open(ctx context.Context, o Order, j *nodeJournal, log *os.File) (
	_ *delaytask.Scheduler, release func() error, err error,
) {
	cfg := delaytask.Config{
		Logger:      slog.New(slog.NewTextHandler(log, nil)).With("process", o.Name),
		NodeName:    "chaos", // all the same, as after a careless deploy
		TTR:         TTR,
		Timeout:     20 * time.Second,
		Backoff:     processor.Exponential(200*time.Millisecond, 2*time.Second, 0.2),
		MaxAttempts: MaxAttempts,
		StopGrace:   5 * time.Second,
	}
	for {
		s, release, err := try(ctx, o, cfg, j)
		if err == nil {
			return s, release, nil
		}
		if errors.Is(err, delaytask.ErrInvalidConfig) {
			return nil, nil, err
		}
		cfg.Logger.InfoContext(ctx, "cannot begin yet", "err", err)
		if err := lateness.Pass(ctx, openEvery); err != nil {
			return nil, nil, err
		}
	}
}

// try does what delaytask.Open does, with a recorder between the engine and its store.
func try(ctx context.Context, o Order, cfg delaytask.Config, j *nodeJournal) (
	_ *delaytask.Scheduler, release func() error, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	db, kind, err := sqlstore.Connect(ctx, o.DSN)
	if err != nil {
		return nil, nil, err
	}
	st := sqlstore.New(db, kind)
	release = func() error { return errors.Join(st.Close(context.WithoutCancel(ctx)), db.Close()) }
	made, err := bridge.NewScheduler(cfg, history.New(st, o.Name, o.Share, j.record),
		func(built engine.Config) (*engine.Engine, error) { return engine.New(ctx, built) })
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return made.(*delaytask.Scheduler), release, nil
}
