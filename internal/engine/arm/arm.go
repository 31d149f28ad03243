// Package arm decides which rows and tags are this node's, and moves timers that fire into the ready queues.
//
//	joining.go  how a process that starts waits for others to join
//	arm.go      shares, timers, the window of the look-ahead, and how far ahead tasks are claimed
//	parts.go    which rows this node reads
//	takeover.go when it takes what others do not begin
//	tags.go     which tags may run here: registered or popped, and not paused
//	census.go   which nodes live
//	commits.go  rows that were saved in a caller's transaction
//	notify.go   tells other nodes of rows that they cannot have seen
package arm

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/runqueue/timer"
	"github.com/delaytask/delaytask/processor"
)

// Arm decides whether this process arms a row. One live node that serves the tag arms a new row. Two nodes may do so
// for a moment, which is harmless. A row that no node arms would be late.
type Arm struct {
	*deps
	Tags     *Tags
	Census   *Census
	Notifier *Notifier
	Commits  *Commits
	Ahead    Ahead
	shares   atomic.Pointer[shares] // nil until the first look at the nodes
	Joining  *Joining
	retreat  retreat
}

// deps is what the parts of this package work with.
type deps struct {
	*events.Events
	cfg      Config
	runqueue *runqueue.Queue
}

// Config says how rows are armed.
type Config struct {
	Registry    *processor.Registry
	Concurrency int   // tasks that run at once in this process
	Waker       Waker // nil where no wake-ups are sent

	LookAhead time.Duration // period of the look-ahead
	Window    time.Duration // how far ahead it reads
	Horizon   time.Duration // a save of this node's share due within it is armed at once
	Heartbeat time.Duration // period of the nodes' heartbeats
}

// ShortTerm is how soon after its save a row is due that the saving node arms whatever the shares say.
func (c *deps) ShortTerm() time.Duration { return 2 * c.cfg.LookAhead }

// New makes what arms rows in a process.
func New(e *events.Events, q *runqueue.Queue, cfg Config, process cluster.Process) *Arm {
	c := &deps{Events: e, cfg: cfg, runqueue: q}
	a := &Arm{deps: c, Joining: joined()}
	a.Census = &Census{deps: c, Process: process, neighbours: cluster.NewNeighbours(process)}
	a.Notifier = newNotifier(c, a.Census)
	a.Tags = newTags(c, a.Notifier)
	a.Census.tags = a.Tags
	a.Commits = newCommits(c, a)
	return a
}

// AwaitOthers lets this process wait for others to join, if so many nodes were there when it did. No look at the nodes
// may have begun.
func (a *Arm) AwaitOthers(peers int) {
	if peers >= fewNodes {
		a.Joining = newJoining()
		time.AfterFunc(joinAtMost, a.Joining.end)
	}
}

// View returns how the nodes share the tags, nil until the first look at them.
func (a *Arm) View() *cluster.View {
	if s := a.shares.Load(); s != nil {
		return s.view
	}
	return nil
}

// shares says which node arms which rows, as this process sees it. The nodes read the list of nodes at different
// moments. So one gives rows away before the next knows that they are its own. Each keeps its former share for a while.
type shares struct {
	view   *cluster.View
	phase  phase
	peers  int
	before *cluster.View // the former view, while it counts; may be nil
	until  time.Time     // when before ends to count
}

// Look takes over a new view of the nodes.
func (a *Arm) Look(view *cluster.View) {
	now := time.Now()
	s := a.shares.Load()
	next := &shares{view: view, peers: min(view.Peers(), maxPaceFactor)}
	next.phase = a.Joining.look(s == nil, s != nil && s.view.Same(view), view.Peers() <= fewNodes)
	switch {
	case s == nil:
	case s.view != view && !s.view.Same(view):
		next.before, next.until = s.view, now.Add(a.ShortTerm())
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
func (a *Arm) Written(rows ...row.Due) {
	now, anchored := a.Bounds.AtLeast()
	soon, limit := now.Add(a.ShortTerm()), now.Add(a.cfg.Horizon)
	for _, d := range rows {
		switch {
		case d.Due <= soon || !anchored: // without an anchor any may be due soon
			a.writtenSoon(d)
		case d.Due <= limit && a.Mine(d.ID, d.Due, d.Tag):
			a.runqueue.Arm(d, false)
		}
	}
}

// writtenSoon is Written for a row that is due soon. A row that can only be popped here is told all the same: the next
// pop may come to another node.
func (a *Arm) writtenSoon(d row.Due) {
	open, runs := a.Tags.takes(d.Tag)
	if open {
		a.runqueue.Arm(d, true)
	}
	if !runs {
		a.Notifier.row(d)
	}
}

// SavedAndServed reports whether the row is due soon after its save and its saver serves the tag, so that only that
// node arms it.
func (a *Arm) SavedAndServed(d row.Due) bool {
	s := a.shares.Load()
	if s == nil {
		return false
	}
	owner, found := s.view.Owner(d.ID, d.Due, d.Tag)
	return found && owner.Of == 0
}

// Mine reports whether this process arms the row. A process that serves a tag before it is announced arms its rows.
func (a *Arm) Mine(id int64, due row.Time, tag string) bool {
	s := a.shares.Load()
	return s != nil && a.Tags.Open(tag) &&
		(s.view.Mine(id, due, tag) || s.before != nil && s.before.Mine(id, due, tag) || !s.view.Served(tag))
}

// Shared reports whether an overdue row is of this node's share, whichever process has saved it. All rows are while a
// process that has started catches up with what a dead node has left.
func (a *Arm) Shared(id int64, tag string) bool { return a.TurnOfAny(id, tag) == 0 }

// TurnOfAny returns in which turn this node takes an overdue row, whichever process has saved it: see [Arm.Shared]. Few
// nodes all take a row of others in the turn after its owner.
func (a *Arm) TurnOfAny(id int64, tag string) int {
	if a.Unassigned() {
		return 0
	}
	view := a.shares.Load().view
	if !view.Served(tag) {
		return 0
	}
	if turn := view.TurnOfAny(id, tag); turn == 0 || a.Census.Many() {
		return turn
	}
	return 1
}

// Unassigned reports whether all overdue rows count as this node's.
func (a *Arm) Unassigned() bool {
	s := a.shares.Load()
	return s == nil || s.phase == catchesUp
}

// maxPaceFactor bounds the pace factor.
const maxPaceFactor = 5

// PaceFactor is the number of nodes that share the work, up to maxPaceFactor. Each claims and settles so many times
// more slowly than a single node. A statement costs the server more than a row: without the factor n nodes would send n
// times the statements with an n-th of the rows in each.
func (a *Arm) PaceFactor() int {
	if s := a.shares.Load(); s != nil {
		return s.peers
	}
	return 1
}

// UnanchoredWait is how often the timers look whether the clock has an anchor again.
const UnanchoredWait = 10 * time.Millisecond

// Loop moves what is due within the claim-ahead window into the ready queues, and sleeps until the next timer enters
// the window. So one statement claims many tasks, and each still starts on its own millisecond.
func (a *Arm) Loop(ctx context.Context) {
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
func (a *Arm) fire() time.Duration {
	now, anchored := a.Bounds.AtLeast()
	if !anchored {
		return UnanchoredWait
	}
	var popped []row.Due
	wait := a.runqueue.Fire(now, a.Ahead.window(), func(e timer.Entry, tag string) bool {
		mine := a.stillMine(e, tag)
		if open, runs := a.Tags.takes(tag); mine && open && !runs {
			popped = append(popped, row.Due{ID: e.ID, Tag: tag, Due: e.Due})
		}
		return mine
	})
	for _, d := range popped {
		if len(a.runqueue.WithTaker([]string{d.Tag})) == 0 {
			a.Notifier.row(d)
		}
	}
	return a.Sleep(wait)
}

// stillMine reports whether a timer that fires is still this process's: nodes come and go, and a tag may be paused.
func (a *Arm) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return a.Tags.Open(tag)
	}
	return a.Mine(e.ID, e.Due, tag)
}

// Ahead measures how far ahead of its due time a task is claimed. The claim-ahead window is four usual round trips
// of a claim, and gatherAhead more for what one statement takes along.
type Ahead struct {
	roundTrip atomic.Int64 // smoothed, in nanoseconds
	last      atomic.Pointer[time.Time]
}

// Saturated reports whether slow claims have lately pushed the window to its bound. Then tasks begin to be late.
func (l *Ahead) Saturated() bool {
	last := l.last.Load()
	return last != nil && time.Since(*last) < saturatedFor && l.window().First >= MaxAhead-gatherAhead
}

// saturatedFor is how long the last claim counts.
const saturatedFor = 5 * time.Second

// MaxAhead bounds how far ahead of its due time a task is claimed.
const MaxAhead = 100 * time.Millisecond

const (
	tightFloor       = 5 * time.Millisecond
	claimAheadFloor  = 15 * time.Millisecond
	gatherAhead      = 25 * time.Millisecond
	roundTripSamples = 8
)

func (l *Ahead) window() runqueue.Window {
	usual := 4 * l.Usual()
	first := min(max(usual, claimAheadFloor), MaxAhead-gatherAhead)
	tight := first
	if usual > 0 {
		tight = min(max(usual, tightFloor), first)
	}
	return runqueue.Window{Near: tight, First: first, Last: first + gatherAhead}
}

// Took records the round trip of a claim, and returns the smoothed one.
func (l *Ahead) Took(d time.Duration) (usual time.Duration) {
	now := time.Now()
	l.last.Store(&now)
	usual = d
	if old := l.Usual(); old > 0 {
		usual = old + (d-old)/roundTripSamples
	}
	l.roundTrip.Store(int64(usual))
	return usual
}

// Usual returns the smoothed round trip of a claim, and 0 before the first.
func (l *Ahead) Usual() time.Duration { return time.Duration(l.roundTrip.Load()) }

// windowRows is how many rows of the window one read returns.
const windowRows = 2000

// ReadWindow arms what falls due until the end of the window. It returns the rows of this node's part
// that have no due time, which only an operator's SQL leaves behind.
func (a *Arm) ReadWindow(ctx context.Context, tags []string) (lacking []row.Ref, err error) {
	now, anchored := a.Bounds.AtLeast()
	if !anchored {
		return nil, nil
	}
	from := now
	if !a.Census.Many() {
		from = now.Add(-runqueue.Overdue) // where many have run rows just now, the poll alone reads through these
	}
	all := row.Window{
		Tags: tags, From: from, To: now.Add(a.cfg.Window), Lacking: true, Limit: windowRows,
	}
	for _, w := range a.Parts(all, 1) {
		refs, err := a.readPart(ctx, w)
		lacking = append(lacking, refs...)
		if err != nil {
			return lacking, err
		}
	}
	return lacking, nil
}

func (a *Arm) readPart(ctx context.Context, w row.Window) (lacking []row.Ref, err error) {
	for {
		page, err := a.Due(ctx, w)
		if err != nil {
			return lacking, err
		}
		for _, d := range page {
			if d.Due.IsZero() {
				lacking = append(lacking, row.Ref{ID: d.ID, Version: d.Version})
			} else if a.Mine(d.ID, d.Due, d.Tag) {
				a.runqueue.Arm(d, false)
			}
		}
		if len(page) < w.Limit {
			return lacking, nil
		}
		w.Lacking = false
		if last := page[len(page)-1]; !last.Due.IsZero() {
			w.From, w.AfterID = last.Due, last.ID
		}
	}
}

// Plans reports whether this process looks first at a schedule.
func (a *Arm) Plans(schedule int64) bool {
	s := a.shares.Load()
	return s == nil || s.view.Plans(schedule)
}
