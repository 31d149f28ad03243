package arm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/report"
)

// Tags knows which tags are open: their tasks may be claimed here now. A tag is open that has a processor or was popped
// here lately, and is not paused. Before Start no tag is open.
//
// Order of locks: refreshing, then the lock of the run queue, then mu.
type Tags struct {
	*deps
	notify *Notifier
	News   runqueue.Wake // a tag has opened or got another limit, but not by a pop

	refreshing sync.Mutex // keeps in order what refreshes tell the run queue, which is told while it is held

	mu      sync.RWMutex // guards what follows; no other lock is taken while it is held
	running bool
	limits  map[string]int     // slots of the tags that are open
	names   []string           // the same, sorted
	popped  map[string]popping // tags that were popped here
	waits   map[string]int     // how many pops wait for a tag
	paused  map[string]bool    // nil until it was read: no tag opens before
	opened  map[string]opening // of the tags that are open
	shut    map[string]bool    // the tags that were paused when the others opened
}

// popping is when a tag was last popped here, and which caller was the first.
type popping struct {
	last time.Time
	by   string
}

// opening is when a tag opened here, and what kept its tasks from starting before.
type opening struct {
	At    time.Time
	After delaytask.LateReason
}

const (
	// popServes is how long the node counts as serving a tag after the last Pop of it.
	popServes = 30 * time.Second
	// mostPopped bounds the tags that are served because of pops. Every heartbeat and every look-ahead names all of
	// them, and a caller may make up names.
	mostPopped = 10_000
	// mostAnnounced is how many of them the node's row lists as popped.
	mostAnnounced = 100
)

var errOwnTags = fmt.Errorf("%w: this caller has popped as many different tags here within the last %v as it may; pop "+
	"fewer, or from several processes", delaytask.ErrOverloaded, popServes)

var errTooManyTags = fmt.Errorf("%w: %d tags were popped here within the last %v, and this process takes no others "+
	"now; pop fewer different tags, or from several processes", delaytask.ErrOverloaded, mostPopped, popServes)

func newTags(c *deps, notify *Notifier) *Tags {
	return &Tags{
		deps: c, notify: notify, News: make(runqueue.Wake, 1),
		limits: map[string]int{}, popped: map[string]popping{}, waits: map[string]int{},
		opened: map[string]opening{},
	}
}

// Open reports whether tasks of the tag may be claimed here.
func (t *Tags) Open(tag string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.limits[tag]
	return ok
}

// Paused reports whether the tag was paused when that was last read.
func (t *Tags) Paused(tag string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.paused[tag]
}

// takes reports whether tasks of the tag may be claimed here, and whether a processor of this process runs them.
func (t *Tags) takes(tag string) (open, runs bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	slots, open := t.limits[tag]
	return open, slots > 0
}

// PoppedLately returns the tags that were popped here lately, [row.AllTags] when they are many.
func (t *Tags) PoppedLately() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.popped) > mostAnnounced {
		return []string{row.AllTags}
	}
	return slices.Sorted(maps.Keys(t.popped))
}

// Opening returns when the tag opened here.
func (t *Tags) Opening(tag string) opening {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.opened[tag]
}

// List returns the open tags, sorted. The caller must not change it.
func (t *Tags) List() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names
}

// Run opens the tags that are registered and not paused, or closes all of them.
func (t *Tags) Run(running bool) {
	t.mu.Lock()
	t.running = running
	t.mu.Unlock()
	t.Refresh()
}

// Read reads from the table which tags are paused.
func (t *Tags) Read(ctx context.Context) error {
	states, look, err := t.Store.Tags(ctx)
	if err != nil {
		return err
	}
	t.take(states, look)
	return nil
}

// take takes what was read.
func (t *Tags) take(states []row.TagState, look row.Time) {
	t.Scheduled(look)
	paused := map[string]bool{}
	for _, s := range states {
		if s.Paused {
			paused[s.Tag] = true
		}
	}
	t.mu.Lock()
	t.paused = paused
	t.mu.Unlock()
	t.Refresh()
}

// Set pauses or resumes a tag for all nodes, and notifies them. Who hears nothing sees it at the next look-ahead.
func (t *Tags) Set(ctx context.Context, to row.TagState) error {
	if err := t.Store.SetTag(ctx, to); err != nil {
		return err
	}
	t.markPause(ctx, to.Tag, to.Paused)
	t.notify.Tag(to.Tag, true)
	return t.Read(ctx)
}

// Served returns the tags that this node announces: those with a processor, and those popped lately.
func (t *Tags) Served() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return row.Distinct(slices.AppendSeq(t.cfg.Registry.Tags(), maps.Keys(t.popped)))
}

// Pop notes that a caller pops the tags here, and reports whether one of them is new. It returns
// [delaytask.ErrOverloaded] when these are too many. A caller gets as many as it leaves free at most, unless its name
// is "".
func (t *Tags) Pop(tags []string, caller string) (fresh bool, err error) {
	fresh, err = t.note(tags, caller)
	if fresh {
		t.reopen() // the pop itself looks for what is overdue
	}
	return fresh, err
}

func (t *Tags) note(tags []string, caller string) (fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unknown := 0
	for _, tag := range tags {
		if _, known := t.popped[tag]; !known {
			unknown++
		}
	}
	if unknown > 0 {
		free, own := mostPopped-len(t.popped)-unknown, t.poppedBy(caller)
		switch {
		case free < 0:
			return false, errTooManyTags
		case own > 0 && own+unknown > free:
			return false, errOwnTags
		}
	}
	now := time.Now()
	for _, tag := range tags {
		if _, known := t.popped[tag]; !known {
			t.popped[tag] = popping{by: caller}
		}
		t.touch(tag, now)
	}
	return unknown > 0, nil
}

// poppedBy counts the tags that a caller has popped first, 0 for "". The caller locks.
func (t *Tags) poppedBy(caller string) (n int) {
	if caller == "" {
		return 0
	}
	for _, p := range t.popped {
		if p.by == caller {
			n++
		}
	}
	return n
}

// touch notes that a tag is popped now. The caller locks.
func (t *Tags) touch(tag string, now time.Time) {
	p := t.popped[tag]
	p.last = now
	t.popped[tag] = p
}

// Await notes that a pop waits for the tags, or by -1 that it waits no more.
func (t *Tags) Await(tags []string, change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tag := range tags {
		if t.waits[tag] += change; t.waits[tag] == 0 {
			delete(t.waits, tag)
		}
	}
}

// Awaited reports whether a pop waits for the tag.
func (t *Tags) Awaited(tag string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.waits[tag] > 0
}

// Refresh works out which tags are open. When one opens or gets another limit, a scan looks for what is overdue.
func (t *Tags) Refresh() {
	if t.reopen() {
		t.News.Set()
	}
}

// reopen works out which tags are open, and tells the run queue. It reports whether one opened or has another limit.
func (t *Tags) reopen() (opened bool) {
	t.refreshing.Lock()
	defer t.refreshing.Unlock()
	t.mu.Lock()
	old := t.limits
	for tag := range t.waits {
		t.touch(tag, time.Now())
	}
	t.limits, t.names = map[string]int{}, nil
	maps.DeleteFunc(t.popped, func(_ string, p popping) bool { return time.Since(p.last) > popServes })
	if t.running && t.paused != nil {
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
	t.noteOpened()
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

// noteOpened notes which tags have opened now. The caller locks.
func (t *Tags) noteOpened() {
	maps.DeleteFunc(t.opened, func(tag string, _ opening) bool { _, still := t.limits[tag]; return !still })
	for tag := range t.limits {
		if _, known := t.opened[tag]; known {
			continue
		}
		after := delaytask.LateUnserved
		if t.shut[tag] {
			after = delaytask.LatePaused
		}
		t.opened[tag] = opening{time.Now(), after}
	}
	t.shut = t.paused
}

// markPause marks that a tag was paused or resumed through this process, and who did it.
func (t *Tags) markPause(ctx context.Context, tag string, paused bool) {
	mark := row.Mark{Kind: report.MarkResumed, Name: row.Actor(ctx)}
	if paused {
		mark.Kind = report.MarkPaused
	}
	if now := t.Now(); !now.IsZero() {
		t.Rollup.Mark(now, tag, t.Rollup.Node, mark)
	}
}
