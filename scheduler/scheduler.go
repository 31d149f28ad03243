package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
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
	core *core.Core
	handle
}

// handle lets other packages of this module get at the core.
type handle = core.Handle

func newScheduler(c *core.Core) *Scheduler { return &Scheduler{core: c, handle: core.NewHandle(c)} }

// Use puts middleware around the processors of all tags, registered before or after. It goes outside of the middleware
// that a tag is registered with. The first one is outermost. A later call adds inside.
//
// It returns [delaytask.ErrStarted] after Start, [delaytask.ErrInvalidOption] when one is nil, and
// [delaytask.ErrNilProcessor] when one returns nil.
func (s *Scheduler) Use(mw ...processor.Middleware) error { return s.core.Use(mw...) }

// Register gives a tag its processor in this process. It may be called before and after Start. A tag has one processor
// in a process; [processor.Concurrency] says how many tasks it runs at once.
//
// It returns [delaytask.ErrInvalidTag], [delaytask.ErrNilProcessor], [delaytask.ErrTagRegistered] when the tag has one
// already, an error that names the number of connections needed when the pool given to [New] is too small for
// processors, or the error of an option.
func (s *Scheduler) Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
	return s.core.Register(tag, p, opts...)
}

// Unregister takes the processor of a tag away, and reports whether it had one: this process takes no more tasks of the
// tag, unless they are popped. What runs goes on; what was claimed ahead of its time is released for another node. The
// tag may be registered again.
func (s *Scheduler) Unregister(tag string) bool { return s.core.Unregister(tag) }

// Start begins to run tasks. It does nothing when called again. A scheduler that only saves need not be started.
//
// It waits for one read of the tags that are paused, 10 s at most, and ctx bounds that wait alone. A ctx that ends
// later stops nothing: call [Scheduler.Stop]. Processors get contexts of their own.
//
// It returns the cause of a ctx that has ended before, and starts nothing then. It returns [delaytask.ErrNoRevision]
// when schedules are declared by a program of unknown revision, and [delaytask.ErrClosed] after Stop.
func (s *Scheduler) Start(ctx context.Context) error { return s.core.Start(ctx) }

// Stop ends the scheduler, started or not. It claims nothing more. Running tasks may finish within [Config].StopGrace
// or until ctx ends, whichever comes first. The others are released without spending an attempt, so that another node
// takes them at once. All results are written when it returns. Calls after the first wait for it and return the same.
//
// It returns the cause of ctx when that ended first, and [delaytask.ErrGraceEnded] when the grace did: tasks were
// released then, which is no fault. It returns [delaytask.ErrResultsNotStored] when results could not be written.
func (s *Scheduler) Stop(ctx context.Context) error { return s.core.Stop(ctx) }

// Ready returns nil when the scheduler can save and run tasks at this moment: the table can be read, this process's
// heartbeat can be written, the database's clock is known, and this process holds a node number. Otherwise it returns
// [ErrNotReady] with the reason, at the latest when ctx ends.
func (s *Scheduler) Ready(ctx context.Context) error { return s.core.Ready(ctx) }

// Now returns the time on the database's clock, the clock of all times of tasks. It is zero while that clock is not
// known.
func (s *Scheduler) Now() time.Time { return s.core.Now() }
