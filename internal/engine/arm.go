package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/timer"
	"github.com/delaytask/delaytask/processor"
)

// armer decides whether this process arms a row. One live node that serves the tag arms a new row. Two nodes may do so
// for a moment, which is harmless. A row that no node arms would be late.
type armer struct {
	*armDeps
	tags    *tags
	census  *census
	notify  *notifier
	commits *commits
	ahead   claimAhead
	shares  atomic.Pointer[shares] // nil until the first look at the nodes
}

// armDeps is what the parts of this package work with.
type armDeps struct {
	*events
	cfg      armConfig
	runqueue *runqueue.Queue
}

// armConfig says how rows are armed.
type armConfig struct {
	Registry    *processor.Registry
	Concurrency int   // tasks that run at once in this process
	Waker       Waker // nil where no wake-ups are sent

	LookAhead time.Duration // period of the look-ahead
	Window    time.Duration // how far ahead it reads
	Horizon   time.Duration // a save of this node's share due within it is armed at once
	Heartbeat time.Duration // period of the nodes' heartbeats
}

// shortTerm is how soon after its save a row is due that the saving node arms whatever the shares say.
func (c *armConfig) shortTerm() time.Duration { return 2 * c.LookAhead }

// newArmer makes what arms rows in a process.
func newArmer(e *events, q *runqueue.Queue, cfg armConfig, process cluster.Process) *armer {
	c := &armDeps{events: e, cfg: cfg, runqueue: q}
	a := &armer{armDeps: c}
	a.census = &census{armDeps: c, token: process.Token, name: process.Name, gone: process.Gone}
	a.notify = newNotifier(c, a.census)
	a.tags = newTags(c, a.notify)
	a.commits = newCommits(c, a)
	return a
}

// view returns how the nodes share the tags, nil until the first look at them.
func (a *armer) view() *cluster.View {
	if s := a.shares.Load(); s != nil {
		return s.view
	}
	return nil
}

// shares says which node arms which rows, as this process sees it. The nodes read the list of nodes at different
// moments. So one gives rows away before the next knows that they are its own. Each keeps its former share for a while.
type shares struct {
	view   *cluster.View
	first  bool // the first look at the nodes, where one that has just died counts as alive
	peers  int
	before *cluster.View // the former view, while it counts; may be nil
	until  time.Time     // when before ends to count
}

// look takes over a new view of the nodes.
func (a *armer) look(view *cluster.View) {
	now := time.Now()
	next := &shares{view: view, peers: min(view.Peers(), maxPaceFactor)}
	switch s := a.shares.Load(); {
	case s == nil:
		next.first = true
	case !s.view.Same(view):
		next.before, next.until = s.view, now.Add(a.cfg.shortTerm())
	case now.Before(s.until):
		next.before, next.until = s.before, s.until
	}
	a.shares.Store(next)
	a.runqueue.SetPeers(next.peers)
}

// Written arms rows that this process has just saved or put back to pending, if they are due within the horizon. It
// arms what is due soon whatever the shares say. The look-ahead of another node might come too late, and no other node
// knows of a tag that has just got its first processor here. Rows that are due soon and of a tag without a processor
// here are told to other nodes.
func (a *armer) Written(rows ...row.Due) {
	now := a.now()
	soon, limit := now.Add(a.cfg.shortTerm()), now.Add(a.cfg.Horizon)
	for _, d := range rows {
		switch {
		case d.Due <= soon || now.IsZero(): // without an anchor any may be due soon
			a.writtenSoon(d)
		case d.Due <= limit && a.mine(d.ID, d.Due, d.Tag):
			a.runqueue.Arm(d, false)
		}
	}
}

// writtenSoon is Written for a row that is due soon. A row that can only be popped here is told all the same: the next
// pop may come to another node.
func (a *armer) writtenSoon(d row.Due) {
	open, runs := a.tags.takes(d.Tag)
	if open {
		a.runqueue.Arm(d, true)
	}
	if !runs {
		a.notify.row(d)
	}
}

// savedAndServed reports whether the row is due soon after its save and its saver serves the tag, so that only that
// node arms it.
func (a *armer) savedAndServed(d row.Due) bool {
	s := a.shares.Load()
	if s == nil {
		return false
	}
	owner, found := s.view.Owner(d.ID, d.Due, d.Tag)
	return found && owner.Of == 0
}

// mine reports whether this process arms the row. A process that serves a tag before it is announced arms its rows.
func (a *armer) mine(id int64, due row.Time, tag string) bool {
	s := a.shares.Load()
	return s != nil && a.tags.open(tag) &&
		(s.view.Mine(id, due, tag) || s.before != nil && s.before.Mine(id, due, tag) || !s.view.Served(tag))
}

// shared reports whether an overdue row is of this node's share, whichever process has saved it. All rows are until the
// second look at the nodes: a process that starts catches up at once with what a dead node has left. Contention brings
// the second look early.
func (a *armer) shared(id int64, tag string) bool {
	if a.unassigned() {
		return true
	}
	view := a.shares.Load().view
	return view.Assigned(id, tag) || !view.Served(tag)
}

// unassigned reports whether the nodes were looked at less than twice, so that all rows count as this node's.
func (a *armer) unassigned() bool {
	s := a.shares.Load()
	return s == nil || s.first
}

// maxPaceFactor bounds the pace factor.
const maxPaceFactor = 5

// paceFactor is the number of nodes that share the work, up to maxPaceFactor. Each claims and settles so many times
// more slowly than a single node. A statement costs the server more than a row: without the factor n nodes would send n
// times the statements with an n-th of the rows in each.
func (a *armer) paceFactor() int {
	if s := a.shares.Load(); s != nil {
		return s.peers
	}
	return 1
}

// longestSleep bounds a sleep of the timers, for a suspend of the machine ends no timer.
const longestSleep = time.Second

// unanchoredWait is how often the timers look whether the clock has an anchor again.
const unanchoredWait = 10 * time.Millisecond

// loop moves what is due within the claim-ahead window into the ready queues, and sleeps until the next timer enters
// the window. So one statement claims many tasks, and each still starts on its own millisecond.
func (a *armer) loop(ctx context.Context) {
	for {
		wait := a.fire()
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-a.runqueue.TimerWake:
		case <-ctx.Done():
			alarm.Stop()
			return
		}
		alarm.Stop()
	}
}

// fire moves what is due into the ready queues and returns how long the loop may sleep. Rows of a tag that can only be
// popped here, and that no caller waits for, are told to the nodes where a caller may.
func (a *armer) fire() time.Duration {
	now, anchored := a.clock.AtLeast()
	if !anchored {
		return unanchoredWait
	}
	var popped []row.Due
	wait := a.runqueue.Fire(now, a.ahead.window(), func(e timer.Entry, tag string) bool {
		mine := a.stillMine(e, tag)
		if open, runs := a.tags.takes(tag); mine && open && !runs {
			popped = append(popped, row.Due{ID: e.ID, Tag: tag, Due: e.Due})
		}
		return mine
	})
	for _, d := range popped {
		if len(a.runqueue.WithTaker([]string{d.Tag})) == 0 {
			a.notify.row(d)
		}
	}
	return min(wait, longestSleep)
}

// stillMine reports whether a timer that fires is still this process's: nodes come and go, and a tag may be paused.
func (a *armer) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return a.tags.open(tag)
	}
	return a.mine(e.ID, e.Due, tag)
}

// claimAhead measures how far ahead of its due time a task is claimed. The claim-ahead window is four usual round trips
// of a claim, and gatherAhead more for what one statement takes along.
type claimAhead struct {
	roundTrip atomic.Int64 // smoothed, in nanoseconds
	last      atomic.Pointer[time.Time]
}

// saturated reports whether slow claims have lately pushed the window to its bound. Then tasks begin to be late.
func (l *claimAhead) saturated() bool {
	last := l.last.Load()
	return last != nil && time.Since(*last) < saturatedFor && l.window().First >= maxClaimAhead-gatherAhead
}

// saturatedFor is how long the last claim counts.
const saturatedFor = 5 * time.Second

// maxClaimAhead bounds how far ahead of its due time a task is claimed.
const maxClaimAhead = 100 * time.Millisecond

const (
	tightFloor       = 5 * time.Millisecond
	claimAheadFloor  = 15 * time.Millisecond
	gatherAhead      = 25 * time.Millisecond
	roundTripSamples = 8
)

func (l *claimAhead) window() runqueue.Window {
	usual := 4 * time.Duration(l.roundTrip.Load())
	first := min(max(usual, claimAheadFloor), maxClaimAhead-gatherAhead)
	tight := first
	if usual > 0 {
		tight = min(max(usual, tightFloor), first)
	}
	return runqueue.Window{Near: tight, First: first, Last: first + gatherAhead}
}

// took records the round trip of a claim, and returns the smoothed one.
func (l *claimAhead) took(d time.Duration) (usual time.Duration) {
	now := time.Now()
	l.last.Store(&now)
	usual = d
	if old := time.Duration(l.roundTrip.Load()); old > 0 {
		usual = old + (d-old)/roundTripSamples
	}
	l.roundTrip.Store(int64(usual))
	return usual
}

const lookAheadRows = 2000

// readWindow arms what falls due from a second ago to the end of the window.
func (a *armer) readWindow(ctx context.Context, tags []string) error {
	now, anchored := a.clock.AtLeast()
	if !anchored {
		return nil
	}
	w := row.Window{Tags: tags, From: now.Add(-runqueue.Overdue), To: now.Add(a.cfg.Window), Limit: lookAheadRows}
	for {
		page, err := a.due(ctx, w)
		if err != nil {
			return err
		}
		for _, d := range page {
			if a.mine(d.ID, d.Due, d.Tag) {
				a.runqueue.Arm(d, false)
			}
		}
		if len(page) < w.Limit {
			return nil
		}
		last := page[len(page)-1]
		w.From, w.AfterID = last.Due, last.ID
	}
}

// plans reports whether this process looks first at a schedule.
func (a *armer) plans(schedule int64) bool {
	s := a.shares.Load()
	return s == nil || s.view.Plans(schedule)
}
