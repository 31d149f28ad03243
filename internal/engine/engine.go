package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/planner"
	"github.com/delaytask/delaytask/internal/rollup"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/wake"
	"github.com/delaytask/delaytask/processor"
)

// Engine wires the parts together. It starts sinks before sources, and stops sources before sinks.
type Engine struct {
	*deps
	member   *cluster.Member
	ids      *ids
	tags     *tags
	arm      *armer
	attempts *attempts

	saver      *save.Saver
	turns      turns
	commits    *commits
	settler    *settler
	runner     *runner
	dispatcher *dispatcher
	claimer    *claimer
	renewer    *renewer
	timers     *timers
	census     *census
	notifier   *notifier
	wakeups    *wakeups
	lookahead  *lookahead
	poll       *overduePoll
	quick      *quickPoll
	file       *fileWatch
	passes     *passes
	planner    *planner.Planner
	declared   planner.Set
	pops       *pops
	holders    *holders
	ends       *ends

	beatSoon chan struct{} // the heartbeat has something new to announce

	endProcessors context.CancelCauseFunc // ends the contexts of running processors
	finders       context.Context         // of the loops that read due rows
	endFinders    context.CancelFunc
	findersDone   sync.WaitGroup
	sources       context.Context // of the loops that claim rows
	endSources    context.CancelFunc
	sourcesDone   sync.WaitGroup

	mu      sync.Mutex // guards what follows; the outermost lock: any other may be taken while it is held
	started bool
	stopped chan struct{} // closed when a stop is complete; nil before it began
	stopErr error
}

// New reads the database's clock, leases a node number and begins to keep both. Tasks can be saved from then on; none
// runs before Start.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	life := newLife(ctx, &cfg)
	c := newDeps(newDBClock(life, cfg.TTR), cfg)
	e := &Engine{deps: c, attempts: newAttempts()}
	if err := e.anchor(ctx); err != nil {
		life.End()
		return nil, err
	}
	process := cluster.NewProcess()
	if cfg.NodeName != "" {
		process.Name = cfg.NodeName
	}
	c.Log = c.Log.With("node", process.Name)
	member, err := cluster.Join(ctx, cfg.Store, cluster.MemberConfig{
		Process: process, Address: cfg.Address, Version: Version,
	})
	if err != nil {
		life.End()
		return nil, fmt.Errorf("joining the nodes of this database: %w", err)
	}
	e.member = member
	e.wire(process)
	e.Metrics.SetConcurrency(cfg.Concurrency)
	e.reportClock()
	c.Go(func() { e.readClock(life.Life, new(clock.Gap).Tick) })
	c.Go(func() { e.heartbeat(life.Life) })
	c.Go(func() { e.commits.loop(life.Life) })
	c.Go(func() { e.notifier.loop(life.Life) })
	c.Go(func() { e.rollup.Loop(life.Life, e.running) })
	e.findersDone.Go(func() { e.measureTable(e.finders) })
	return e, nil
}

// newLife begins the life of an engine.
func newLife(ctx context.Context, cfg *Config) *lifecycle.Lifecycle {
	return lifecycle.New(ctx, lifecycle.Config{Log: cfg.Logger, Metrics: cfg.Metrics, CallTimeout: cfg.CallTimeout})
}

// wire makes the parts and tells each whom it hands its work to.
func (e *Engine) wire(process cluster.Process) {
	c := e.deps
	executor := fmt.Sprintf("%s:%d:%s", process.Name, process.PID, process.Token)
	var processors context.Context
	processors, e.endProcessors = context.WithCancelCause(c.Life)
	e.finders, e.endFinders = context.WithCancel(c.Life)
	e.sources, e.endSources = context.WithCancel(c.Life)

	c.rollup = rollup.NewWriter(rollup.Config{
		Counts: c.counts, Store: c.store, Life: c.Lifecycle, Now: c.clock.AtLeast, Node: process.Token,
	})
	c.moved = func(r row.Reading) {
		c.rollup.Mark(r.Time, "", process.Token, row.Mark{Kind: row.MarkFailover, Name: r.Server})
	}
	e.ids = newIDs(e.member, c.clock)
	e.beatSoon = make(chan struct{}, 1)
	e.census = &census{deps: c, token: process.Token, name: process.Name, gone: process.Gone}
	e.notifier = newNotifier(c, e.census, process.Token)
	e.tags = newTags(c, func() { e.passes.runner.Kick(passScan) }, func() []string { return e.pops.awaited() })
	e.tags.notify = e.notifier
	e.arm = &armer{deps: c, tags: e.tags, notify: e.notifier}
	ahead := &claimAhead{}
	e.commits = newCommits(c, e.arm)
	e.saver = save.New(c.Lifecycle, save.Config{
		Store: c.store, Clock: c.clock, IDs: e.ids, Registry: c.cfg.Registry,
		TTR: c.cfg.TTR, MaxAttempts: c.cfg.MaxAttempts, Committed: e.arm.written, InTx: e.commits.add,
		Stored: func(r *row.Row) { c.watch.tell(processor.EventSaved, r, nil) },
		Ended: func(err error) {
			if err != nil || c.health.saveFailed.Load() {
				c.health.saved(err)
			}
		},
	})
	e.turns.of = map[int64]*turn{}
	outcomes := &outcomes{deps: c, arm: e.arm}
	e.settler = newSettler(c, e.arm, outcomes, e.attempts)
	e.runner = &runner{deps: c, attempts: e.attempts, settler: e.settler, base: processors}
	e.holders = newHolders(c, outcomes)
	e.ends = newEnds(e.runner, e.holders, outcomes)
	e.pops = newPops(e.runner, e.tags, e.holders)
	e.renewer = newRenewer(c, e.attempts, e.runner)
	e.dispatcher = newDispatcher(e.runner, e.renewer, e.pops)
	e.claimer = newClaimer(c, e.arm, ahead, e.dispatcher.add, executor, process.IP)
	e.runner.handover = newHandover(c, e.attempts, e.holders, e.renewer.await)
	e.timers = &timers{deps: c, arm: e.arm, ahead: ahead}
	e.wakeups = newWakeups(c, e.arm, e.pops.awaited)
	e.lookahead = &lookahead{deps: c, arm: e.arm, attempts: e.attempts, census: e.census}
	e.pops.finders, e.pops.ahead = e.finders, e.lookahead.readWindow
	e.quick = newQuickPoll(c, e.arm, e.pops.awaited)
	e.file = &fileWatch{deps: c, arm: e.arm, census: e.census, quick: e.quick, attempts: e.attempts}
	e.poll = &overduePoll{deps: c, arm: e.arm, quick: e.quick, attempts: e.attempts}
	e.planner = newPlanner(c, e.arm, e.census, e.ids.Next)
	e.tags.looked, c.watch.runEnded, e.runner.settler.confirm = e.planner.Look, e.planner.Ended, e.planner.Confirm
	e.passes = newPasses(c, e.arm, e.holders, e.ids, ahead, executor)
}

// Start begins to run tasks. It reads which tags are paused, and then does not block. It does nothing when called
// again, and returns [processor.ErrClosed] after Stop.
func (e *Engine) Start(ctx context.Context) error {
	e.readPaused(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil {
		return processor.ErrClosed
	}
	if e.started {
		return nil
	}
	e.started = true
	e.declare()
	if e.cfg.Waker != nil {
		e.cfg.Waker.Listen(e.census.token, e.wakeups.hear)
	}
	e.describe(true)
	e.markNode(row.MarkJoined)
	e.tags.run(true)
	e.Go(func() { e.tellOfStart(e.Life) })
	e.Go(func() { e.dispatcher.loop(e.Life) })
	e.Go(func() { e.renewer.loop(e.Life, &e.renewer.short) })
	e.Go(func() { e.renewer.loop(e.Life, &e.renewer.long) })
	e.Go(func() { e.renewer.look(e.Life) })
	e.Go(func() { e.renewer.deadlines(e.Life) })
	// Other nodes tell this one of rows for a moment after it has announced that it leaves.
	for _, loop := range []func(context.Context){e.claimer.loop, e.timers.loop, e.wakeups.loop} {
		e.sourcesDone.Go(func() { loop(e.sources) })
	}
	for _, loop := range []func(context.Context){
		e.poll.loop, e.quick.loop, e.file.loop, e.passes.loop, e.planner.Loop,
		e.planner.Measure,
	} {
		e.findersDone.Go(func() { loop(e.finders) })
	}
	e.findersDone.Go(func() {
		e.announce() // or the first look at the nodes would not find this one
		e.lookahead.loop(e.finders)
	})
	e.passes.runner.Start(e.finders)
	for _, pass := range []string{passOrphans, passRescue, passScan} {
		e.passes.runner.Kick(pass)
	}
	return nil
}

// readPaused reads which tags are paused. When that fails, no tag opens until the look-ahead has read it.
func (e *Engine) readPaused(ctx context.Context) {
	ctx, cancel := e.CallIn(ctx)
	defer cancel()
	if err := e.tags.read(ctx); err != nil {
		e.Failed("reading which tags are paused", err)
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
		e.tags.refresh()
	}
}

// Unregistered tells the engine that a tag has lost its processor. What waits of it is dropped, what runs goes on, and
// what was claimed ahead of its time is released when that comes.
func (e *Engine) Unregistered() {
	if e.running() {
		e.tags.refresh()
		e.announceAtBeat()
	}
}

// Pause stops claims of a tag on all nodes within two look-aheads; what runs goes on.
func (e *Engine) Pause(ctx context.Context, tag string) error { return e.tags.set(ctx, tag, true) }

// Resume ends a pause. Every node that sees it scans at once.
func (e *Engine) Resume(ctx context.Context, tag string) error { return e.tags.set(ctx, tag, false) }

// Committed says that the caller's transactions that have saved or changed the tasks have ended. Their rows are looked
// for at once.
func (e *Engine) Committed(ids []int64) { e.commits.committed(ids) }

// Wake tells all nodes that rows of the tags may be due now or soon that they do not know of.
func (e *Engine) Wake(tags []string) {
	now := e.now()
	for _, tag := range tags {
		e.notifier.tag(tag, false)
		e.wakeups.hear([]wake.Notice{{Tag: tag, From: now.Add(-runqueue.Overdue), To: now.Add(e.cfg.shortTerm())}})
	}
}

// Now returns the database's time as far as it is certain, zero while there is no anchor.
func (e *Engine) Now() row.Time { return e.now() }

// Version is what the node's row says of the program.
const Version = "0.1.0"

// deps is what every part of the engine works with. By embedding it a part has the store and its steps (table), the
// database's time (dbClock), calls and the log (lifecycle), and the users' hooks.
type deps struct {
	*table
	*hooks
	watch    *watch
	counts   *rollup.Counts
	rollup   *rollup.Writer
	cfg      Config
	runqueue *runqueue.Queue
	atOnce   bool // what becomes of an attempt is written before its goroutine goes on: see Manual
}

func newDeps(c *dbClock, cfg Config) *deps {
	limits := runqueue.Limits{Timers: cfg.HeapCap, Backlog: backlogPerTag}
	counts := rollup.NewCounts()
	return &deps{
		table:    newTable(c, cfg.Store),
		hooks:    &hooks{life: c.Lifecycle, failed: cfg.OnFailed, rescued: cfg.OnRescued},
		watch:    newWatch(c.now, counts),
		counts:   counts,
		cfg:      cfg,
		runqueue: runqueue.New(cfg.Concurrency, cfg.Quarantine, limits),
	}
}

// signal leaves a message in a channel of capacity one; a message that is already there says the same.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// ids draws ids that carry the node's number for as long as its lease holds.
type ids struct {
	*cluster.IDs
	member *cluster.Member
}

func newIDs(member *cluster.Member, c *clock.Clock) *ids {
	number, _ := member.Number()
	now := func() time.Time {
		if t, ok := c.AtMost(); ok {
			return t.Std()
		}
		return time.Now()
	}
	return &ids{IDs: cluster.NewIDs(number, now), member: member}
}

// Next draws an id.
func (i *ids) Next() int64 {
	number, _ := i.member.Number()
	i.SetNode(number)
	return i.IDs.Next()
}
