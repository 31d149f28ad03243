package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	*deps
	tags   *tags
	shares atomic.Pointer[shares] // nil until the first look at the nodes
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

// written arms rows that this process has just saved or put back to pending, if they are due within the horizon. It
// arms what is due soon whatever the shares say. The look-ahead of another node might come too late, and no other node
// knows of a tag that has just got its first processor here.
func (a *armer) written(rows ...row.Due) {
	now := a.now()
	soon, limit := now.Add(a.cfg.shortTerm()), now.Add(a.cfg.Horizon)
	for _, d := range rows {
		switch {
		case d.Due <= soon:
			if a.tags.open(d.Tag) {
				a.runqueue.Arm(d, true)
			}
		case d.Due <= limit && a.mine(d.ID, d.Due, d.Tag):
			a.runqueue.Arm(d, false)
		}
	}
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

// timers moves what is due within the claim-ahead window into the ready queues, and sleeps until the next timer enters
// the window. So one statement claims many tasks, and each still starts on its own millisecond.
type timers struct {
	*deps
	arm   *armer
	ahead *claimAhead
}

// longestSleep bounds a sleep of the timers, for a suspend of the machine ends no timer.
const longestSleep = time.Second

// unanchoredWait is how often the timers look whether the clock has an anchor again.
const unanchoredWait = 10 * time.Millisecond

func (t *timers) loop(ctx context.Context) {
	for {
		wait := t.fire()
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-t.runqueue.TimerWake:
		case <-ctx.Done():
			alarm.Stop()
			return
		}
		alarm.Stop()
	}
}

// fire moves what is due into the ready queues and returns how long the loop may sleep.
func (t *timers) fire() time.Duration {
	now, anchored := t.clock.AtLeast()
	if !anchored {
		return unanchoredWait
	}
	return min(t.runqueue.Fire(now, t.ahead.window(), t.stillMine), longestSleep)
}

// stillMine reports whether a timer that fires is still this process's: nodes come and go, and a tag may be paused.
func (t *timers) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return t.arm.tags.open(tag)
	}
	return t.arm.mine(e.ID, e.Due, tag)
}

// tags knows which tags this process may run now: those with a processor that are not paused. Before Start it is none.
//
// Order of locks: refreshing, mu. Both are taken before those of the run queue.
type tags struct {
	*deps
	resumed func()          // called when a paused tag opens again
	awaited func() []string // the tags that pops wait for

	refreshing sync.Mutex // keeps in order what refreshes tell the run queue

	mu      sync.RWMutex // guards what follows; no other lock is taken while it is held
	running bool
	limits  map[string]int       // slots of the tags that are open
	names   []string             // the same, sorted
	popped  map[string]time.Time // tags that were popped here, and when
	paused  map[string]bool
}

const (
	// popServes is how long the node counts as serving a tag after the last Pop of it.
	popServes = 30 * time.Second
	// mostPopped bounds the tags that are served because of pops. Every heartbeat and every look-ahead names all of
	// them, and a caller may make up names.
	mostPopped = 10_000
)

var errTooManyTags = fmt.Errorf("%w: %d tags were popped here within the last %v, and this process takes no others "+
	"now; pop fewer different tags, or from several processes", processor.ErrOverloaded, mostPopped, popServes)

func newTags(c *deps, resumed func(), awaited func() []string) *tags {
	return &tags{
		deps: c, resumed: resumed, awaited: awaited,
		limits: map[string]int{}, popped: map[string]time.Time{}, paused: map[string]bool{},
	}
}

// open reports whether tasks of the tag may be claimed here.
func (t *tags) open(tag string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.limits[tag]
	return ok
}

// list returns the open tags, sorted. The caller must not change it.
func (t *tags) list() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names
}

// run opens the registered tags, or closes all of them.
func (t *tags) run(running bool) {
	t.mu.Lock()
	t.running = running
	t.mu.Unlock()
	t.refresh()
}

// read reads from the table which tags are paused.
func (t *tags) read(ctx context.Context) error {
	states, err := t.store.Tags(ctx)
	if err != nil {
		return err
	}
	paused := map[string]bool{}
	for _, s := range states {
		if s.Paused {
			paused[s.Tag] = true
		}
	}
	t.mu.Lock()
	t.paused = paused
	t.mu.Unlock()
	t.refresh()
	return nil
}

// set pauses or resumes a tag for all nodes. The others see it at their next look-ahead.
func (t *tags) set(ctx context.Context, tag string, paused bool) error {
	if err := t.store.SetTag(ctx, row.TagState{Tag: tag, Paused: paused}); err != nil {
		return err
	}
	return t.read(ctx)
}

// served returns the tags that this node announces: those with a processor, and those popped lately.
func (t *tags) served() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	served := slices.AppendSeq(t.cfg.Registry.Tags(), maps.Keys(t.popped))
	slices.Sort(served)
	return slices.Compact(served)
}

// pop notes that the tags are popped here, and reports whether one of them is new. It returns
// [processor.ErrOverloaded] when these are too many.
func (t *tags) pop(tags []string) (fresh bool, err error) {
	fresh, err = t.note(tags)
	if fresh {
		t.reopen() // the pop itself looks for what is overdue
	}
	return fresh, err
}

func (t *tags) note(tags []string) (fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unknown := 0
	for _, tag := range tags {
		if _, known := t.popped[tag]; !known {
			unknown++
		}
	}
	if unknown > 0 && len(t.popped)+unknown > mostPopped {
		return false, errTooManyTags
	}
	now := time.Now()
	for _, tag := range tags {
		t.popped[tag] = now
	}
	return unknown > 0, nil
}

// refresh works out which tags are open. When one opens, it starts a scan for what is overdue.
func (t *tags) refresh() {
	if t.reopen() {
		t.resumed()
	}
}

// reopen works out which tags are open, and tells the run queue. It reports whether one opened or has another limit.
func (t *tags) reopen() (opened bool) {
	t.refreshing.Lock()
	defer t.refreshing.Unlock()
	awaited := t.awaited()
	t.mu.Lock()
	old := t.limits
	for _, tag := range awaited {
		t.popped[tag] = time.Now()
	}
	t.limits, t.names = map[string]int{}, nil
	maps.DeleteFunc(t.popped, func(_ string, last time.Time) bool { return time.Since(last) > popServes })
	if t.running {
		for _, tag := range t.cfg.Registry.Tags() {
			reg, _ := t.cfg.Registry.Lookup(tag)
			t.limits[tag] = min(cmp.Or(reg.Concurrency, t.cfg.Concurrency), t.cfg.Concurrency)
		}
		for tag := range t.popped {
			t.limits[tag] += 0
		}
		maps.DeleteFunc(t.limits, func(tag string, _ int) bool { return t.paused[tag] })
	}
	t.names = slices.Sorted(maps.Keys(t.limits))
	now := t.limits
	t.mu.Unlock()

	for tag, limit := range now {
		if before, was := old[tag]; !was || before != limit {
			t.runqueue.Serve(tag, true, limit)
			opened = true
		}
	}
	for tag := range old {
		if _, still := now[tag]; !still {
			t.runqueue.Serve(tag, false, 0)
		}
	}
	return opened
}

// shortTerm is how soon after its save a row is due that the saving node arms whatever the shares say.
func (c *Config) shortTerm() time.Duration { return 2 * c.LookAhead }

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
