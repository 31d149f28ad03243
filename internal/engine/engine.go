package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/clock"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/report"
)

// Engine wires the parts together. It starts sinks before sources, and stops sources before sinks.
type Engine struct {
	*control.Control
	*lease.Ends

	cfg      Config
	process  row.Process
	events   *events.Events
	member   *cluster.Member
	ids      *ids.Source
	runqueue *runqueue.Queue
	arm      *arm.Arm
	pool     *run.Pool
	leases   *lease.Leases
	find     *find.Finders
	planner  *plan.Planner
	declared plan.Set

	beatSoon chan struct{} // the heartbeat has something new to announce

	finders     context.Context // of the loops that read due rows
	endFinders  context.CancelFunc
	findersDone sync.WaitGroup
	sources     context.Context // of the loops that claim rows
	endSources  context.CancelFunc
	sourcesDone sync.WaitGroup

	mu      sync.Mutex // guards what follows; the outermost lock: any other may be taken while it is held
	started bool
	stopped chan struct{} // closed when a stop is complete; nil before it began
	stopErr error
}

// New reads the database's clock, leases a node number and begins to keep both. Tasks can be saved from then on; none
// runs before Start.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	life := newLife(ctx, &cfg)
	c := table.NewClock(life, cfg.Machine, cfg.TTR)
	t := table.New(c, cfg.Store)
	if err := c.TakeReadings(ctx, cfg.Store, table.ReadingsInARow); err != nil {
		life.End()
		return nil, fmt.Errorf("reading the database's clock: %w", err)
	}
	process := cluster.NewProcess()
	if cfg.NodeName != "" {
		process.Name = cfg.NodeName
	}
	life.Log = life.Log.With("node", process.Name)
	source := ids.NewSource(ids.RandomNode(), c.Bounds.Guess)
	member, err := cluster.Join(ctx, cfg.Store, cluster.MemberConfig{
		Process: process, Address: cfg.Address, Version: build(), IDs: source,
	})
	if err != nil {
		life.End()
		return nil, fmt.Errorf("joining the nodes of this database: %w", err)
	}
	e := &Engine{cfg: cfg, member: member, ids: source}
	e.wire(t, process, false)
	life.Metrics.SetConcurrency(cfg.Concurrency)
	c.ReportClock()
	life.Go(func() { e.readClock(life.Life, new(clock.Gap).Tick) })
	life.Go(func() { e.heartbeat(life.Life) })
	life.Go(func() { e.arm.Commits.Loop(life.Life) })
	life.Go(func() { e.arm.Notifier.Loop(life.Life) })
	life.Go(func() { e.events.Rollup.Loop(life.Life, e.running) })
	e.findersDone.Go(func() { e.measureTable(e.finders) })
	return e, nil
}

// newLife begins the life of an engine.
func newLife(ctx context.Context, cfg *Config) *lifecycle.Lifecycle {
	return lifecycle.New(ctx, lifecycle.Config{Log: cfg.Logger, Metrics: cfg.Metrics, CallTimeout: cfg.CallTimeout})
}

// backlogPerTag is how many overdue rows of a tag wait in memory.
const backlogPerTag = 1000

// parts are what a change of rows tells.
type parts struct {
	*arm.Arm      // of what is written
	*run.Pool     // of what is cancelled
	*find.Finders // of what all nodes may run now
}

// wire makes the parts, each of those that it knows. At once says that a caller tells the time and runs each task.
func (e *Engine) wire(t *table.Table, process cluster.Process, atOnce bool) {
	cfg := &e.cfg
	if cfg.WithTimeout == nil {
		cfg.WithTimeout = context.WithTimeoutCause
	}
	number, _ := row.ProcessOf(process.Token)
	e.process = row.Process{ID: number, Name: process.Name, PID: process.PID}
	e.finders, e.endFinders = context.WithCancel(t.Life)
	e.sources, e.endSources = context.WithCancel(t.Life)
	e.beatSoon = make(chan struct{}, 1)
	q := runqueue.New(cfg.Concurrency, cfg.Quarantine, runqueue.Limits{Timers: cfg.HeapCap, Backlog: backlogPerTag})
	e.runqueue = q
	e.events = events.New(t, events.Config{Node: process.Token, OnFailed: cfg.OnFailed, OnRescued: cfg.OnRescued})
	e.arm = arm.New(e.events, q, arm.Config{
		Registry: cfg.Registry, Concurrency: cfg.Concurrency, Waker: cfg.Waker, LookAhead: cfg.LookAhead,
		Window: cfg.Window, Horizon: cfg.Horizon, Heartbeat: cfg.Heartbeat,
	}, process)
	e.pool = run.New(e.arm, q, run.Config{
		Registry: cfg.Registry, Process: e.process, IP: process.IP, CallTimeout: cfg.CallTimeout,
		Timeout: cfg.Timeout, StopGrace: cfg.StopGrace, Backoff: cfg.Backoff, ErrorLimit: cfg.ErrorLimit,
		Nap: cfg.Nap, WithTimeout: cfg.WithTimeout, AtOnce: atOnce,
	})
	e.leases = lease.New(e.finders, e.arm, e.pool, q, lease.Config{
		Registry: cfg.Registry, Quarantine: cfg.Quarantine, AtOnce: atOnce,
	})
	e.pool.HandTo(e.leases)
	e.find = find.New(e.arm, e.pool, e.leases, q, find.Config{
		Process: e.process.ID, NextID: e.ids.Next, CallTimeout: cfg.CallTimeout, LookAhead: cfg.LookAhead,
		Window: cfg.Window, ScanEvery: cfg.ScanEvery, Retention: cfg.Retention, Quarantine: cfg.Quarantine,
		FileVersion: cfg.FileVersion, AtOnce: atOnce,
	})
	e.Control = control.New(e.events, parts{e.arm, e.pool, e.find}, control.Config{
		Registry: cfg.Registry, NextID: e.ids.Next, TTR: cfg.TTR, MaxAttempts: cfg.MaxAttempts,
	})
	e.Ends = e.leases.Ends
	e.planner = newPlanner(e.arm, cfg.LookAhead, e.ids.Next)
	e.events.WatchSchedules(e.planner)
}

// Start begins to run tasks. It reads which tags are paused, and then does not block. It does nothing when called
// again, and returns [delaytask.ErrClosed] after Stop.
func (e *Engine) Start(ctx context.Context) error {
	e.readPaused(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil {
		return delaytask.ErrClosed
	}
	if e.started {
		return nil
	}
	e.started = true
	e.declare()
	if e.cfg.Waker != nil {
		e.cfg.Waker.Listen(e.arm.Census.Process.Token, e.find.Hear)
	}
	e.describe(true)
	e.markNode(report.MarkJoined)
	e.arm.Tags.Run(true)
	life := e.events.Life
	e.events.Go(func() { e.tellOfStart(life) })
	e.pool.Start()
	// Other nodes tell this one of rows for a moment after it has announced that it leaves.
	for _, loop := range []func(context.Context){e.pool.Claim, e.arm.Loop, e.find.Listen} {
		e.sourcesDone.Go(func() { loop(e.sources) })
	}
	e.find.Start(e.finders, e.member.Peers())
	for _, loop := range append(e.find.Loops(), e.planner.Loop, e.planner.Measure, e.introduce) {
		e.findersDone.Go(func() { loop(e.finders) })
	}
	e.findersDone.Go(func() {
		e.announce() // or the first look at the nodes would not find this one
		e.find.LookAhead(e.finders)
	})
	return nil
}

// readPaused reads which tags are paused. When that fails, no tag opens until the look-ahead has read it.
func (e *Engine) readPaused(ctx context.Context) {
	ctx, cancel := e.events.CallIn(ctx)
	defer cancel()
	if err := e.arm.Tags.Read(ctx); err != nil {
		e.events.Failed("reading which tags are paused", err)
	}
}

// running reports whether the engine was started and not stopped.
func (e *Engine) running() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.started && e.stopped == nil
}

// Registered tells the engine that a tag has got its processor after Start.
func (e *Engine) Registered() {
	if e.running() {
		e.arm.Tags.Refresh()
	}
}

// Unregistered tells the engine that a tag has lost its processor. Its waiting rows are dropped, running tasks go on,
// and rows that were claimed ahead of their time are released at that time.
func (e *Engine) Unregistered() {
	if e.running() {
		e.arm.Tags.Refresh()
		e.announceAtBeat()
	}
}

// Pause stops claims of a tag on all nodes within two look-aheads; what runs goes on. The reason is for people.
func (e *Engine) Pause(ctx context.Context, tag, reason string) error {
	return e.arm.Tags.Set(ctx, row.TagState{Tag: tag, Paused: true, Reason: reason})
}

// Resume ends a pause. Every node that sees it scans at once.
func (e *Engine) Resume(ctx context.Context, tag string) error {
	return e.arm.Tags.Set(ctx, row.TagState{Tag: tag})
}

// Committed says that the caller's transactions that have saved or changed the tasks have ended. Their rows are looked
// for at once.
func (e *Engine) Committed(ids []int64) { e.arm.Commits.Committed(ids) }

// Wake tells all nodes that rows of the tags may be due now or soon that they do not know of.
func (e *Engine) Wake(tags []string) { e.find.Wake(tags) }

// Now returns the database's time as far as it is certain, zero while there is no anchor.
func (e *Engine) Now() row.Time { return e.events.Now() }

// ClockWidth returns how far the bounds of the database's clock are apart. It is false while no task may start.
func (e *Engine) ClockWidth() (time.Duration, bool) { return e.events.Bounds.Width() }

// LockedTags returns the tags whose writes wait here, because another transaction has locked a range of their rows,
// sorted.
func (e *Engine) LockedTags() []string { return e.events.Ranges.Tags() }

// TwoDatabases returns the servers of two databases that answer at the address of the database, nil where there is
// one.
func (e *Engine) TwoDatabases() []string { return e.events.TwoDatabases() }

// Hanging returns the processors that hang in this process, the longest first. It takes the stacks of all goroutines,
// and only where there is one.
func (e *Engine) Hanging() []run.Hanging { return e.pool.Hanging() }

// Abort ends the life at once, as a crash does. Nothing reaches the store afterwards.
func (e *Engine) Abort() { e.events.Abort() }
