package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
)

// order is the task of a child process. Each role uses a part of it.
type order struct {
	Role    string        `json:"role"`
	DSN     string        `json:"dsn"`
	Tag     string        `json:"tag"`     // that is served
	Count   int           `json:"count"`   // of tasks
	Rate    int           `json:"rate"`    // of tasks a second
	Span    time.Duration `json:"span"`    // of what is measured
	Rest    time.Duration `json:"rest"`    // before that
	Serving bool          `json:"serving"` // tasks are run here
	Saving  bool          `json:"saving"`  // tasks are saved here
	Way     shortWay      `json:"way"`
	Began   time.Time     `json:"began"`   // when the process was started
	Profile string        `json:"profile"` // file for a CPU profile
}

// roles run until ctx ends, or until they have nothing left to do. ctx ends when the parent closes their input or dies.
var roles = map[string]func(context.Context, order, *child.Narrator) error{
	"lateness": latenessChild,
	"now":      nowChild,
	"short":    shortChild,
	"ticks":    ticksChild,
	"backfill": backfillChild,
	"idle":     idleChild,
	"restart":  restartChild,
	"serve":    serveChild,
	"node":     nodeChild,
}

// Child runs the part of a measurement in the program that [Options].Child starts.
func Child(ctx context.Context, in io.Reader, out io.Writer) error {
	return child.Serve(ctx, in, out, func(ctx context.Context, o order, t *child.Narrator) error {
		role := roles[o.Role]
		if role == nil {
			return fmt.Errorf("there is no role %q", o.Role)
		}
		return role(ctx, o, t)
	})
}

// onScheduler opens a scheduler in a child while f runs.
func (o order) onScheduler(ctx context.Context, cfg delaytask.Config, f func(*delaytask.Scheduler) error) (err error) {
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	s, err := delaytask.Open(ctx, o.DSN, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	return f(s)
}

// startChild starts a process in a role. Its events have one type.
func startChild[E any](ctx context.Context, r *run, o order) (*child.Process[E], error) {
	if len(r.Child) == 0 {
		return nil, errors.New("this program does not know how to start a process of its own")
	}
	return child.Start[E](ctx, o, r.Child...)
}
