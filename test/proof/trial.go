package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/lateness"
)

// trial is one proof on one database, which is empty at first.
type trial struct {
	proof    string
	db       dbtest.Database
	quick    bool
	progress io.Writer
	results  []result
}

func (t *trial) run(ctx context.Context, p proof) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("it took longer than %v", p.limit))
	defer cancel()
	if err := sameClock(ctx, t.db); err != nil {
		return err
	}
	return p.show(ctx, t)
}

// count is n, or a tenth of it.
func (t *trial) count(n int) int {
	if t.quick {
		return n / 10
	}
	return n
}

func (t *trial) say(format string, args ...any) {
	at := time.Now().Format(time.TimeOnly)
	_, _ = fmt.Fprintf(t.progress, "%s %s %s: %s\n", at, t.db.Kind, t.proof, fmt.Sprintf(format, args...))
}

func (t *trial) add(what, figure, bound string, v verdict) {
	t.results = append(t.results, result{t.proof, what, figure, bound, v})
}

// promise adds a line that decides about the exit code.
func (t *trial) promise(what, figure, bound string, ok bool) {
	if ok {
		t.add(what, figure, bound, kept)
	} else {
		t.add(what, figure, bound, broken)
	}
}

// aim adds a line about speed.
func (t *trial) aim(what, figure, bound string, ok bool) {
	if ok {
		t.add(what, figure, bound, met)
	} else {
		t.add(what, figure, bound, missed)
	}
}

// open is how all schedulers of the proofs are made, in the children too.
func open(ctx context.Context, dsn string, cfg delaytask.Config) (*delaytask.Scheduler, error) {
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	cfg.Migrate = true
	return delaytask.Open(ctx, dsn, cfg)
}

// stopped stops a scheduler also when its proof has run out of time, and adds what that says to an error.
func stopped(ctx context.Context, s *delaytask.Scheduler, err error) error {
	if stop := s.Stop(context.WithoutCancel(ctx)); stop != nil {
		return errors.Join(err, fmt.Errorf("stop the scheduler: %w", stop))
	}
	return err
}

// with opens a scheduler that serves nothing, for the time of f.
func (t *trial) with(ctx context.Context, f func(*delaytask.Scheduler) error) error {
	s, err := open(ctx, t.db.DSN, delaytask.Config{})
	if err != nil {
		return err
	}
	return stopped(ctx, s, f(s))
}

// tasks reads all tasks of a tag from the table.
func (t *trial) tasks(ctx context.Context, tag string) (all []delaytask.Task, err error) {
	err = t.with(ctx, func(s *delaytask.Scheduler) error {
		all, err = lateness.Tasks(ctx, s, tag)
		return err
	})
	return all, err
}
