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

// armer decides whether this process arms a row. Of all live nodes that serve the tag exactly one arms a new row;
// overlap is harmless, a gap would be late.
type armer struct {
	*deps
	tags   *tags
	shares atomic.Pointer[shares] // nil until the first look at the nodes
}

// shares is who arms what, as this process sees it. The nodes look one after the other, and for a moment one of them
// has given away what the next does not know it has got. So each keeps for a while what was its own before.
type shares struct {
	view   *cluster.View
	first  bool // it is the first look: who died a moment ago still counts as alive
	peers  int
	before *cluster.View // nil after a while
	until  time.Time     // when that counts no more
}

// look takes a new look at the nodes over.
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

// written arms rows that this process has just saved or put back to pending, as far as they are due within the horizon.
// It arms what is due soon whatever the shares say: the look-ahead of another node might come too late, and a tag that
// has just got its first taker here is known to no node yet.
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

// mine reports whether this process arms the row. It does when it is the only one that serves the tag and has not
// announced that yet.
func (a *armer) mine(id int64, due row.Time, tag string) bool {
	s := a.shares.Load()
	return s != nil && a.tags.open(tag) &&
		(s.view.Mine(id, due, tag) || s.before != nil && s.before.Mine(id, due, tag) || !s.view.Served(tag))
}

// shared reports whether an overdue row is of this node's share, whoever saved it. Up to the second look at the nodes
// all are: a start catches up at once, whoever has died before, and claims that are in vain bring the second look.
func (a *armer) shared(id int64, tag string) bool {
	if a.unassigned() {
		return true
	}
	view := a.shares.Load().view
	return view.Assigned(id, tag) || !view.Served(tag)
}

// unassigned reports whether that is so yet.
func (a *armer) unassigned() bool {
	s := a.shares.Load()
	return s == nil || s.first
}

// Nodes on one database divide its tasks, and each would send its statements at a pace of its own: n nodes n times as
// many as one, with an n-th of the rows in each. A statement costs the server more than a row, so n nodes claim and
// settle at an n-th of the pace, and together about as many times as one would.

// maxPaceFactor bounds how much slower that is.
const maxPaceFactor = 5

// company is how many nodes share the work, this one among them, as far as that slows it down.
func (a *armer) paceFactor() int {
	if s := a.shares.Load(); s != nil {
		return s.peers
	}
	return 1
}

// timers sleeps until the head of the heap is due, minus the lead, and moves everything that is due within the lead
// into the ready queues. Because tasks are claimed ahead of their time, one statement claims many of them, and each
// still starts on its own millisecond.
type timers struct {
	*deps
	arm   *armer
	ahead *claimAhead
}

// insurance bounds a sleep: the machine may have been suspended, or the clock has found its anchor again.
const insurance = time.Second

// unanchoredWait is how often what is due looks whether the clock has found its anchor again.
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
	return min(t.runqueue.Fire(now, t.ahead.window(), t.stillMine), insurance)
}

// stillMine is asked once more when a timer fires: nodes come and go, and a tag may have been paused meanwhile.
func (t *timers) stillMine(e timer.Entry, tag string) bool {
	if e.Own {
		return t.arm.tags.open(tag)
	}
	return t.arm.mine(e.ID, e.Due, tag)
}

// tags knows which tags this process may run now: those with a processor that are not paused. Before Start it is none.
type tags struct {
	*deps
	resumed func()          // called when a paused tag opens again
	awaited func() []string // the tags that pops wait for

	refreshing sync.Mutex // what one refresh tells the run queue must not overtake what another does

	mu      sync.RWMutex
	running bool
	limits  map[string]int       // slots of the tags that are open
	names   []string             // the same, sorted
	popped  map[string]time.Time // tags that were popped here, and when
	paused  map[string]bool
}

const (
	// popServes is how long after the last Pop the node counts as serving the tag.
	popServes = 30 * time.Second
	// mostPopped bounds the tags that are served because of pops: every heartbeat and every look at the table names all of
	// them, and whoever pops may make up names.
	mostPopped = 10_000
)

var errTooManyTags = fmt.Errorf("%w: %d tags were popped here within the last %v, and this process takes no others now; pop fewer "+
	"different tags, or from several processes", processor.ErrOverloaded, mostPopped, popServes)

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

// read takes over what is paused from the table.
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

// set pauses or resumes a tag for all nodes; the others see it at their next look-ahead.
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

// pop notes that the tags are being popped here. It reports whether one of them is new, and returns
// [processor.ErrOverloaded] when that is one too many.
func (t *tags) pop(tags []string) (fresh bool, err error) {
	fresh, err = t.note(tags)
	if fresh {
		t.reopen() // the pop looks for itself what is overdue
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

// refresh works out which tags are open, and has what is overdue of those that were not looked for.
func (t *tags) refresh() {
	if t.reopen() {
		t.resumed()
	}
}

// reopen works out which tags are open, and tells the run queue. It reports whether one is that was not.
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

// shortTerm is how soon after its save a row must be due so that the saving node arms it whatever the shares say: the
// look-ahead of another node might come too late.
func (c *Config) shortTerm() time.Duration { return 2 * c.LookAhead }

// lead is how far ahead of its due time a task is claimed. It follows the round trip of the claims: a task is claimed
// early enough that a claim of four times the usual length is back in time, and everything due within a little more
// travels along.
type claimAhead struct {
	roundTrip atomic.Int64 // smoothed, in nanoseconds
	last      atomic.Pointer[time.Time]
}

// saturated reports whether claims have lately been so slow that the lead is at its bound: tasks begin to be late.
func (l *claimAhead) saturated() bool {
	last := l.last.Load()
	return last != nil && time.Since(*last) < saturatedFor && l.window().First >= maxClaimAhead-gatherAhead
}

// saturatedFor is how long a slow claim counts that no other follows.
const saturatedFor = 5 * time.Second

const (
	tightFloor       = 5 * time.Millisecond
	claimAheadFloor  = 15 * time.Millisecond
	gatherAhead      = 25 * time.Millisecond // what falls due in so much more time is claimed in the same statement
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

// took records the round trip of a claim, and returns what it is as a rule.
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
