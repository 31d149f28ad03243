// Package find finds rows that were not saved here, and rows that memory has lost.
//
//	lookahead.go    rows that other processes have saved, every second
//	wakeups.go      rows that other processes tell of
//	overduepoll.go  rows that have just become overdue; quickpoll.go reads often where wake-ups fail
//	filewatch.go    changes of the file of an embedded database
//	passes.go       what the scanner finds every few seconds; also rescue, purge and orphaned claims
//	leasetags.go    where leases may be, which rescue and orphaned claims look for
package find

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// Finders find rows that were not saved here, and rows that memory has lost.
type Finders struct {
	*deps
	Lookahead *lookahead
	Poll      *overduePoll
	quick     *quickPoll
	file      *fileWatch
	wakeups   *wakeups
	Passes    *passes
}

// deps is what the parts of this package work with.
type deps struct {
	*events.Events
	cfg      Config
	runqueue *runqueue.Queue
	arm      *arm.Arm
	pool     *run.Pool
	leases   *lease.Leases
}

// Config says how rows are found.
type Config struct {
	Process int64
	NextID  func() int64 // draws an id

	CallTimeout time.Duration // longest wait for one answer of the store
	LookAhead   time.Duration // period of the look-ahead
	Window      time.Duration // how far ahead it reads
	ScanEvery   time.Duration // period of all passes of the scanner but the rescue
	Retention   Retention
	Quarantine  int // crash count that fails a task

	// FileVersion returns a number that differs when another connection has changed an embedded database. Nil for a
	// server.
	FileVersion func(context.Context) (int64, error)

	// AtOnce says that there is one clock, and that rescued tasks do not run by themselves.
	AtOnce bool
}

// New makes what finds rows for a pool, and ends the leases of what it has lost.
func New(a *arm.Arm, p *run.Pool, l *lease.Leases, q *runqueue.Queue, cfg Config) *Finders {
	c := &deps{Events: a.Events, cfg: cfg, runqueue: q, arm: a, pool: p, leases: l}
	f := &Finders{deps: c, Lookahead: &lookahead{deps: c}, wakeups: newWakeups(c), quick: newQuickPoll(c)}
	f.file = &fileWatch{deps: c, quick: f.quick}
	f.Poll = &overduePoll{deps: c, quick: f.quick}
	f.Passes = newPasses(c)
	return f
}

// Loops returns the loops that read due rows. Each runs until its context ends.
func (f *Finders) Loops() []func(context.Context) {
	return []func(context.Context){f.Poll.loop, f.quick.loop, f.file.loop, f.Passes.loop}
}

// LookAhead reads rows that fall due, nodes and paused tags, until ctx ends.
func (f *Finders) LookAhead(ctx context.Context) { f.Lookahead.loop(ctx) }

// Listen reads what other processes tell of, until ctx ends.
func (f *Finders) Listen(ctx context.Context) { f.wakeups.loop(ctx) }

// Start begins the passes of the scanner, with a scan, a rescue and a look for orphaned claims at once. If so many
// nodes were there when this one joined, the scan may wait until they are known.
func (f *Finders) Start(ctx context.Context, peers int) {
	select {
	case <-f.arm.Tags.News: // what has opened with the start is scanned with it
	default:
	}
	f.arm.AwaitOthers(peers)
	f.Passes.runner.Start(ctx)
	for _, pass := range []string{passOrphans, passRescue, passScan} {
		f.Passes.runner.Kick(pass)
	}
}

// Stop ends the passes, and the reading of backlogs.
func (f *Finders) Stop(ctx context.Context) error { return f.Passes.stop(ctx) }

// Scan looks for overdue rows at once.
func (f *Finders) Scan() { f.Passes.runner.Kick(passScan) }

// Warning returns what an operator has to mend although tasks run, or "".
func (f *Finders) Warning() string {
	mend := f.Health.Warning()
	if mend == "" {
		return ""
	}
	return beyondLast + ": " + mend
}

// Rescue ends the leases that are over, once.
func (f *Finders) Rescue(ctx context.Context) error { return f.Passes.rescue.Pass(ctx) }

// Hear takes what another process tells of.
func (f *Finders) Hear(notices []wake.Notice) { f.wakeups.hear(notices) }

// Wake tells all nodes that rows of the tags may be due now or soon that they do not know of.
func (f *Finders) Wake(tags []string) {
	now := f.Now()
	for _, tag := range tags {
		f.arm.Notifier.Tag(tag, false)
		f.Hear([]wake.Notice{{Tag: tag, From: now.Add(-runqueue.Overdue), To: now.Add(f.arm.ShortTerm())}})
	}
}

// Retention says how long rows stay after they reached a final status; 0 keeps them for ever.
type Retention struct {
	Completed, Cancelled, Failed time.Duration

	Audit time.Duration // entries of the audit log
}

// ByStatus returns how long rows of each final status stay.
func (r Retention) ByStatus() map[row.Status]time.Duration {
	return map[row.Status]time.Duration{
		row.Completed: r.Completed,
		row.Cancelled: r.Cancelled,
		row.Failed:    r.Failed,
	}
}
