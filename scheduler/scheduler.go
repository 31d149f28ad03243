package scheduler

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
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Version is the version of this library and of the program delaytask.
const Version = engine.Version

// Scheduler saves tasks and, once started, runs those whose tags are registered. Any number of schedulers, in any
// number of processes, share one database. Make one with [Open] or [New]; it is safe for concurrent use.
//
// Every method that takes a context returns [delaytask.ErrNilContext] for a nil one, the context's cause when that has
// ended before anything was done, and [delaytask.ErrClosed] after Stop. Other errors of the database are returned
// wrapped with the operation.
type Scheduler struct {
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

	release func(context.Context) error // frees what the scheduler holds of the database
	stop    sync.Once
	stopErr error
	started atomic.Bool
	closed  atomic.Bool
}

// newScheduler makes the scheduler of an engine that was built with the config.
func newScheduler(e *engine.Engine, built engine.Config, cfg *Config, release func(context.Context) error) *Scheduler {
	s := &Scheduler{
		engine: e, store: built.Store, registry: built.Registry,
		bodyLimit: cfg.BodyLimit, quarantine: built.Quarantine, heartbeat: built.Heartbeat, release: release,
		declared: declared{
			named: cfg.ownerNamed, set: plan.Set{Owner: cfg.ScheduleOwner, Revision: row.At(cfg.Revision)},
		},
	}
	s.overview = newOverview(e, built)
	s.tracing = newTracing(cfg, s.Now)
	if s.tracing.tracer != nil {
		// Tracing is the outermost middleware. An empty registry refuses none.
		_ = s.registry.Use(processor.Tracing(s.tracing.process))
	}
	return s
}

// Use puts middleware around the processors of all tags, registered before or after. It goes outside of the middleware
// that a tag is registered with. The first one is outermost, and those of a later call are inside.
//
// It returns [delaytask.ErrStarted] after Start, [delaytask.ErrInvalidOption] when one is nil, and
// [delaytask.ErrNilProcessor] when one returns nil.
func (s *Scheduler) Use(mw ...processor.Middleware) error {
	switch {
	case s.closed.Load():
		return delaytask.ErrClosed
	case s.started.Load():
		return delaytask.ErrStarted
	}
	return s.registry.Use(mw...)
}

// Register gives a tag its processor in this process. It may be called before and after Start. A tag has one processor
// in a process; [processor.Concurrency] says how many tasks it runs at once.
//
// It returns [delaytask.ErrInvalidTag], [delaytask.ErrNilProcessor], [delaytask.ErrTagRegistered] when the tag has one
// already, or the error of an option.
func (s *Scheduler) Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
	if s.closed.Load() {
		return delaytask.ErrClosed
	}
	if err := s.registry.Register(tag, p, opts...); err != nil {
		return err
	}
	s.engine.Registered()
	return nil
}

// Unregister takes the processor of a tag away, and reports whether it had one: this process takes no more tasks of the
// tag, unless they are popped. What runs goes on; what was claimed ahead of its time is released for another node. The
// tag may be registered again.
func (s *Scheduler) Unregister(tag string) bool {
	had := s.registry.Unregister(tag)
	s.engine.Unregistered()
	return had
}

// Start begins to run tasks. It does not block, and does nothing when called again. A scheduler that only saves need
// not be started.
func (s *Scheduler) Start(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if err := s.declared.check(); err != nil {
		return err
	}
	if !s.started.Swap(true) {
		s.engine.Declare(s.declared.take())
	}
	return s.engine.Start(ctx)
}

// releaseWait is how long Stop waits for statements in flight before it abandons them.
const releaseWait = 5 * time.Second

// Stop ends the scheduler, started or not. It claims nothing more. Running tasks may finish within [Config].StopGrace
// or until ctx ends, whichever comes first. The others are released without spending an attempt, so that another node
// takes them at once. All results are written when it returns. Calls after the first wait for it and return the same.
//
// It returns the cause of ctx when that ended first, and [delaytask.ErrGraceEnded] when the grace did: tasks were
// released then, which is no fault.
func (s *Scheduler) Stop(ctx context.Context) error {
	if ctx == nil {
		return delaytask.ErrNilContext
	}
	s.stop.Do(func() {
		s.bulks.End()
		err := s.engine.Stop(ctx)
		s.closed.Store(true) // not before: tasks that still run may save others
		s.overview.Close()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
		defer cancel()
		s.bulks.Wait(last)
		s.stopErr = errors.Join(err, s.release(last))
	})
	return s.stopErr
}

// Ready returns nil when the scheduler can save and run tasks at this moment: the table can be read, this process's
// heartbeat can be written, the database's clock is known, and this process holds a node number. Otherwise it returns
// [ErrNotReady] with the reason, at the latest when ctx ends.
func (s *Scheduler) Ready(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if _, _, err := s.store.Get(ctx, nil, []int64{1}); err != nil { // whether the row exists does not matter
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if err := s.engine.Ready(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}

// Now returns the time on the database's clock, the clock of all times of tasks. It is zero while that clock is not
// known.
func (s *Scheduler) Now() time.Time { return s.engine.Now().Std() }

// enter returns the error of a call that cannot begin.
func (s *Scheduler) enter(ctx context.Context) error {
	switch {
	case ctx == nil:
		return delaytask.ErrNilContext
	case s.closed.Load():
		return delaytask.ErrClosed
	default:
		return context.Cause(ctx)
	}
}

// enterTx is enter for the methods that take a transaction. A nil pointer inside the interface would panic deep in the
// driver.
func (s *Scheduler) enterTx(ctx context.Context, tx delaytask.Tx) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if v := reflect.ValueOf(tx); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return delaytask.ErrNilTx
	}
	return nil
}
