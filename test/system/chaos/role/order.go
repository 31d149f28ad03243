// Package role is what the processes of a chaos run do: workers run tasks that succeed and fail in many ways, savers
// make and change tasks. Each writes what it does and sees to its journal before anything depends on it.
package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/history"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/usage"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

type Order struct {
	Role    string `json:"role"`
	Program string `json:"-"`    // that does it; "": this one
	Name    string `json:"name"` // in the journal; no other process of the run has it
	DSN     string `json:"dsn"`
	Journal string `json:"journal"` // the file to make
	Log     string `json:"log"`     // the file to append to
	Seed    uint64 `json:"seed"`
	Share   int    `json:"share"` // of so many tasks one has its history recorded

	Clock Clock `json:"clock"` // the database's; expected times are noted by it

	Tags []string `json:"tags"` // of workers

	// Of savers:
	Rate       int           `json:"rate"`        // tasks a second
	DeathEvery time.Duration `json:"death_every"` // tasks that kill their process once; 0: none
	Poisons    int           `json:"poisons"`     // tasks that kill their process always
}

// State is what a process reports when it has begun, and every few seconds from then on.
type State struct {
	Memory     int64 `json:"memory"` // resident bytes
	Goroutines int   `json:"goroutines"`
}

const (
	Worker = "work"
	Saver  = "save"
)

// TTR is short, so that a run sees many rescues. Freezes last twice as long or longer.
const TTR = 3 * time.Second

// MaxAttempts of a task whose processor always fails.
const MaxAttempts = 4

// Tags are what workers serve: one for each pace, so that slow tasks do not delay quick ones. The last one is for tasks
// that end their process. The worker that lives through the run does not serve it.
var Tags = []string{"chaos.quick", "chaos.slow", "chaos.bad", "chaos.deadly"}

// TickTag is the tag of the runs of schedules. Only the table tells of them.
const TickTag = "chaos.tick"

// Harmless are the tags whose tasks leave their process alone.
var Harmless = Tags[:3]

const deadlyTag = 3

// Serve runs the role until ctx ends: when the process is asked to stop or its parent has ended.
func Serve(ctx context.Context, o Order, n *child.Narrator) (err error) {
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // connections are lost here on purpose
		return err
	}
	log, err := os.OpenFile(o.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	file, err := journal.Create(o.Journal)
	if err != nil {
		return err
	}
	defer file.Close()
	j := &nodeJournal{node: o.Name, file: file}
	heard := &listener{slew: o.Clock.Slew}
	s, release, err := open(ctx, o, j, heard, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	switch o.Role {
	case Worker:
		return work(ctx, s, j, heard, o, n)
	case Saver:
		return save(ctx, s, j, heard, o, n)
	}
	return fmt.Errorf("there is no role %q", o.Role)
}

const tellEvery = 5 * time.Second

// tellState reports the state of the process to the parent until ctx ends.
func tellState(ctx context.Context, n *child.Narrator) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		resident, _, _ := usage.Memory() // 0 where it cannot be measured
		n.Tell(State{Memory: resident, Goroutines: runtime.NumGoroutine()})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// nodeName is the name of all processes, as after a careless deploy.
const nodeName = "chaos"

// openEvery is how often a process tries to begin while the database is away.
const openEvery = 300 * time.Millisecond

// open waits for a database that is away. The caller stops the scheduler before it calls release.
func open(ctx context.Context, o Order, j *nodeJournal, heard *listener, log *os.File) (
	_ *scheduler.Scheduler, release func() error, err error,
) {
	cfg := scheduler.Config{
		Logger:      slog.New(slog.NewTextHandler(log, nil)).With("process", o.Name),
		NodeName:    nodeName,
		TTR:         TTR,
		Timeout:     20 * time.Second,
		Backoff:     processor.Exponential(200*time.Millisecond, 2*time.Second, 0.2),
		MaxAttempts: MaxAttempts,
		StopGrace:   5 * time.Second,
	}
	for {
		s, release, err := try(ctx, o, cfg, j, heard)
		if err == nil {
			return s, release, nil
		}
		if errors.Is(err, scheduler.ErrInvalidConfig) {
			return nil, nil, err
		}
		cfg.Logger.InfoContext(ctx, "cannot begin yet", "err", err)
		if err := lateness.Pass(ctx, openEvery); err != nil {
			return nil, nil, err
		}
	}
}

// try does what scheduler.Open does, with a recorder between the engine and its store, and a bad network for wake-ups.
func try(ctx context.Context, o Order, cfg scheduler.Config, j *nodeJournal, heard *listener) (
	_ *scheduler.Scheduler, release func() error, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	db, kind, err := sqlstore.Connect(ctx, o.DSN)
	if err != nil {
		return nil, nil, err
	}
	w, err := newWaker(o, cfg.Logger)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	st := sqlstore.New(db, kind)
	release = func() error { return errors.Join(st.Close(context.WithoutCancel(ctx)), db.Close()) }
	heard.Store = history.New(st, o.Name, o.Share, j.record)
	core.BuildOn(&cfg, heard,
		func(built engine.Config) (*engine.Engine, error) {
			built.Waker = w
			return engine.New(ctx, built)
		})
	made, err := scheduler.New(ctx, nil, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return made, release, nil
}
