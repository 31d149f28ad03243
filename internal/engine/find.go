package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/wake"
)

// finders find rows that were not saved here, and rows that memory has lost.
type finders struct {
	*findDeps
	lookahead *lookahead
	poll      *overduePoll
	quick     *quickPoll
	file      *fileWatch
	wakeups   *wakeups
	passes    *passes
}

// findDeps is what the parts of this package work with.
type findDeps struct {
	*events
	cfg      findConfig
	runqueue *runqueue.Queue
	arm      *armer
	pool     *pool
	leases   *leases
}

// findConfig says how rows are found.
type findConfig struct {
	Executor string       // "host:pid:process token"
	NextID   func() int64 // draws an id

	CallTimeout time.Duration // longest wait for one answer of the store
	LookAhead   time.Duration // period of the look-ahead
	Window      time.Duration // how far ahead it reads
	ScanEvery   time.Duration // period of all passes of the scanner but the rescue
	Retention   Retention
	Quarantine  int // crash count at which a task is failed

	// FileVersion returns a number that differs when another connection has changed an embedded database. Nil for a
	// server.
	FileVersion func(context.Context) (int64, error)

	// AtOnce says that there is one clock, and that rescued tasks do not run by themselves.
	AtOnce bool
}

// newFinders makes what finds rows for a pool, and ends the leases of what it has lost.
func newFinders(p *pool, l *leases, q *runqueue.Queue, cfg findConfig) *finders {
	c := &findDeps{events: p.events, cfg: cfg, runqueue: q, arm: p.arm, pool: p, leases: l}
	f := &finders{findDeps: c, lookahead: &lookahead{findDeps: c}, wakeups: newWakeups(c), quick: newQuickPoll(c)}
	f.file = &fileWatch{findDeps: c, quick: f.quick}
	f.poll = &overduePoll{findDeps: c, quick: f.quick}
	f.passes = newPasses(c)
	return f
}

// loops returns the loops that read due rows. Each runs until its context ends.
func (f *finders) loops() []func(context.Context) {
	return []func(context.Context){f.poll.loop, f.quick.loop, f.file.loop, f.passes.loop}
}

// lookAhead reads rows that fall due, nodes and paused tags, until ctx ends.
func (f *finders) lookAhead(ctx context.Context) { f.lookahead.loop(ctx) }

// listen reads what other processes tell of, until ctx ends.
func (f *finders) listen(ctx context.Context) { f.wakeups.loop(ctx) }

// start begins the passes of the scanner, with a scan, a rescue and a look for orphaned claims at once.
func (f *finders) start(ctx context.Context) {
	select {
	case <-f.arm.tags.news: // what has opened with the start is scanned with it
	default:
	}
	f.passes.runner.Start(ctx)
	for _, pass := range []string{passOrphans, passRescue, passScan} {
		f.passes.runner.Kick(pass)
	}
}

// stop ends the passes, and the reading of backlogs.
func (f *finders) stop() error { return f.passes.stop() }

// scan looks for overdue rows at once.
func (f *finders) scan() { f.passes.runner.Kick(passScan) }

// rescue ends the leases that are over, once.
func (f *finders) rescue(ctx context.Context) error { return f.passes.rescue.Pass(ctx) }

// hear takes what another process tells of.
func (f *finders) hear(notices []wake.Notice) { f.wakeups.hear(notices) }

// Wake tells all nodes that rows of the tags may be due now or soon that they do not know of.
func (f *finders) Wake(tags []string) {
	now := f.now()
	for _, tag := range tags {
		f.arm.notify.tag(tag, false)
		f.hear([]wake.Notice{{Tag: tag, From: now.Add(-runqueue.Overdue), To: now.Add(f.arm.cfg.shortTerm())}})
	}
}

// Retention says how long rows stay after they reached a final status; 0 keeps them for ever.
type Retention struct {
	Completed, Cancelled, Failed time.Duration

	Audit time.Duration // entries of the audit log
}

func (r Retention) byStatus() map[row.Status]time.Duration {
	return map[row.Status]time.Duration{
		row.Completed: r.Completed,
		row.Cancelled: r.Cancelled,
		row.Failed:    r.Failed,
	}
}
