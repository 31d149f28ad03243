package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Core saves tasks and, once started, runs those whose tags are registered. A method that *scheduler.Scheduler also has
// is documented there.
type Core struct {
	engine     *engine.Engine
	store      store.Store
	registry   *processor.Registry
	bodyLimit  int
	quarantine int
	heartbeat  time.Duration
	tracing    tracing
	declared   declared
	bulks      bulk.Runs // that a dashboard or the service has started
	overview   *overview.Reader

	startPaused bool
	readOnly    bool
	roomToRun   func() error
	release     func(context.Context) error
	stop        sync.Once
	stopErr     error
	started     atomic.Bool
	closed      atomic.Bool
}

// ErrNotReady is returned by Ready, with the reason.
var ErrNotReady = errors.New("delaytask: not ready")

// Config says what a core stands on.
type Config struct {
	Engine      *engine.Engine
	Built       engine.Config // that the engine was built with
	BodyLimit   int           // of a task, in bytes
	Tracing     Tracing
	Declared    plan.Set                    // of the program; its schedules come with DeclareSchedule
	Named       bool                        // the owner of the declared schedules was set, not found
	StartPaused bool                        // all known tags are paused before the first task runs
	ReadOnly    bool                        // it never starts
	RoomToRun   func() error                // why the database has no room for processors; nil when it has
	Release     func(context.Context) error // frees what is held of the database
}

// New returns the core of an engine.
func New(cfg Config) *Core {
	c := &Core{
		engine: cfg.Engine, store: cfg.Built.Store, registry: cfg.Built.Registry, bodyLimit: cfg.BodyLimit,
		quarantine: cfg.Built.Quarantine, heartbeat: cfg.Built.Heartbeat,
		startPaused: cfg.StartPaused, readOnly: cfg.ReadOnly, roomToRun: cfg.RoomToRun, release: cfg.Release,
		declared: declared{named: cfg.Named, set: cfg.Declared}, overview: newOverview(cfg.Engine, cfg.Built),
	}
	c.tracing = newTracing(cfg.Tracing, c.Now)
	if c.tracing.tracer != nil {
		// Tracing is the outermost middleware. An empty registry refuses none.
		_ = c.registry.Use(processor.Tracing(c.tracing.process))
	}
	return c
}

func (c *Core) Use(mw ...processor.Middleware) error {
	switch {
	case c.closed.Load():
		return delaytask.ErrClosed
	case c.started.Load():
		return delaytask.ErrStarted
	}
	return c.registry.Use(mw...)
}

func (c *Core) Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
	if c.closed.Load() {
		return delaytask.ErrClosed
	}
	if err := c.roomToRun(); err != nil {
		return fmt.Errorf("delaytask: %w", err)
	}
	if err := c.registry.Register(tag, p, opts...); err != nil {
		return err
	}
	c.engine.Registered()
	return nil
}

func (c *Core) Unregister(tag string) bool {
	had := c.registry.Unregister(tag)
	c.engine.Unregistered()
	return had
}

func (c *Core) Start(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if c.readOnly {
		return store.ErrReadOnly
	}
	if !c.started.Load() && c.startPaused {
		if err := c.pauseKnown(ctx); err != nil {
			return fmt.Errorf("delaytask: start paused: %w", err)
		}
	}
	if !c.started.Swap(true) {
		c.engine.Declare(c.declared.take())
	}
	return c.engine.Start(ctx)
}

// releaseWait is how long Stop waits for statements in flight before it abandons them.
const releaseWait = 5 * time.Second

func (c *Core) Stop(ctx context.Context) error {
	if ctx == nil {
		return delaytask.ErrNilContext
	}
	c.stop.Do(func() {
		c.bulks.End()
		err := c.engine.Stop(ctx)
		c.closed.Store(true) // not before: tasks that still run may save others
		c.overview.Close()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
		defer cancel()
		c.bulks.Wait(last)
		c.stopErr = errors.Join(err, c.release(last))
	})
	return c.stopErr
}

func (c *Core) Ready(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if _, _, err := c.store.Get(ctx, nil, []int64{1}); err != nil { // whether the row exists does not matter
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if err := c.engine.Ready(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}

func (c *Core) Now() time.Time { return c.engine.Now().Std() }

// enter returns the error of a call that cannot begin.
func (c *Core) enter(ctx context.Context) error {
	switch {
	case ctx == nil:
		return delaytask.ErrNilContext
	case c.closed.Load():
		return delaytask.ErrClosed
	default:
		return context.Cause(ctx)
	}
}

// CheckTx returns [delaytask.ErrNilTx] for a nil transaction. A nil pointer in the interface would panic in the driver.
func CheckTx(tx delaytask.Tx) error {
	if v := reflect.ValueOf(tx); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return delaytask.ErrNilTx
	}
	return nil
}

// Store returns the store of the tasks.
func (c *Core) Store() store.Store { return c.store }

// Bulks returns the bulk changes of this process. Stop ends them.
func (c *Core) Bulks() *bulk.Runs { return &c.bulks }

// Registered returns what a tag was registered with, and whether it was.
func (c *Core) Registered(tag string) (processor.Registration, bool) { return c.registry.Lookup(tag) }

// ClockWidth returns how far the bounds of the database's clock are apart. It is false while no task may start.
func (c *Core) ClockWidth() (time.Duration, bool) { return c.engine.ClockWidth() }

// Warning returns what an operator has to mend although the core is ready, "" when it knows of nothing.
func (c *Core) Warning() string { return c.engine.Warning() }
