package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/air"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
)

// The tags. Those in evenTags are served by every other slot only, those in popTags by no processor.
var (
	tags     = []string{"alpha", "beta"}
	evenTags = []string{"even"}
	popTags  = []string{"pop"}
)

// world is one run of one seed, inside a bubble.
type world struct {
	plan
	db     *memstore.Store
	book   journal.Memory
	clocks clocks
	raw    *pace // of the processes: what slews their clock does not slew this
	air    air.Network

	calm    chan struct{}  // closed when the faults end
	over    chan struct{}  // closed when all has been seen
	away    atomic.Bool    // the database refuses connections
	crashed atomic.Bool    // the last crash has happened
	work    sync.WaitGroup // everything that runs beside the engines

	mu     sync.Mutex
	lives  []*life // that take part now
	tasks  []int64 // that were accepted
	runs   atomic.Int64
	stored map[int64]int64 // versions; guarded by the store
}

// begins is when a run begins: the time of a bubble does so before ids do.
var begins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// play runs a seed and returns its journal. The caller is in a bubble.
func play(seed uint64) []journal.Event {
	<-time.After(time.Until(begins))
	p := newPlan(seed)
	w := &world{plan: p, calm: make(chan struct{}), over: make(chan struct{}), stored: map[int64]int64{},
		raw: newPace(), clocks: clocks{db: newPace()}}
	w.clocks.slewed = p.slew > 0 && p.slewsDB && !p.oneMachine
	w.db = memstore.New(memstore.WithClock(w.clocks.db.now), memstore.WithWatch(w.see),
		memstore.WithDecisions(w.decided))
	w.note("sim", journal.Rules, journal.Event{Detail: judge.Encode(Rules)})
	w.note("sim", journal.StoreWhole, journal.Event{})
	w.note("sim", journal.Phase, journal.Event{Detail: journal.PhaseFaults})
	for slot := range p.slots {
		w.work.Go(func() { w.supervise(slot) })
		w.work.Go(func() { w.often("partition", slot, p.partition, func(d draw, n int) { w.partition(d, slot, n) }) })
		w.work.Go(func() { w.often("freeze", slot, p.freeze, func(d draw, n int) { w.freeze(d, slot, n) }) })
	}
	w.work.Go(func() { w.often("outage", 0, p.outage, w.outage) })
	w.work.Go(func() { w.often("failover", 0, p.failover, w.failover) })
	w.work.Go(func() {
		w.often("slew", 0, p.slew, func(d draw, n int) {
			op := fmt.Sprintf("slew %d: %s", n, slew(d, w.raw, w.clocks.db, w.oneMachine, w.slewsDB))
			w.note("faults", journal.FaultBegin, journal.Event{Op: op, Detail: "slew"})
		})
	})
	w.work.Go(func() { w.often("lock", 0, p.lock, w.lock) })
	for i := range p.externals {
		w.work.Go(func() { w.newExternal(i).work() })
	}
	for i := range p.schedules {
		w.work.Go(func() { w.newKeeper(i).work() })
	}
	<-time.After(p.faults)
	w.repair()
	<-time.After(p.drain)
	synctest.Wait()
	events := w.end()
	w.work.Wait()
	<-time.After(time.Minute) // what is still on its way arrives
	return events
}

// repair ends the faults. A call that is under way may still pause a tag, or be lost by an earlier fault: so the links
// are restored for some seconds more.
func (w *world) repair() {
	close(w.calm)
	w.raw.set(1)
	w.clocks.db.set(1)
	w.away.Store(false)
	w.restore()
	w.work.Go(func() {
		for range 5 {
			<-time.After(time.Second)
			w.restore()
		}
	})
	now := w.clocks.db.now().Add(w.clocks.now())
	w.note("sim", journal.Phase, journal.Event{Detail: journal.PhaseDrain, Clock: now})
	for _, wait := range []time.Duration{0, 200 * time.Millisecond, Rules.Settle - 200*time.Millisecond} {
		w.work.Go(func() {
			<-time.After(wait)
			for _, tag := range tags {
				_ = w.db.SetTag(context.Background(), row.TagState{Tag: tag})
			}
		})
	}
}

func (w *world) restore() {
	for _, l := range w.alive() {
		l.link.Restore()
	}
}

// end writes the table into the journal and ends the goroutines of the run.
func (w *world) end() []journal.Event {
	w.note("sim", journal.Phase, journal.Event{Detail: journal.PhaseDone})
	for _, r := range w.db.All() {
		w.note("db", journal.Row, rowEvent(&r, true))
	}
	w.noteTicks()
	events := w.book.Events()
	close(w.over)
	return events
}

// see is called for every change of the table. It writes transitions and moved leases into the journal.
func (w *world) see(r row.Row, now row.Time) {
	version, known := w.stored[r.ID]
	w.stored[r.ID] = r.Version
	e := rowEvent(&r, !known)
	e.Clock = now.Std()
	switch {
	case !known || version != r.Version:
		w.note("db", journal.Write, e)
	case r.Status == row.Executing:
		w.note("db", journal.Lease, e)
	}
}

// decided is called for every decision that is applied.
func (w *world) decided(d row.Decision, now row.Time) {
	w.note("db", journal.Decide, journal.Event{ID: d.Schedule.ID, Clock: now.Std(), Detail: encoded(d)})
}

// noteTicks writes the histories of the schedules into the journal.
func (w *world) noteTicks() {
	ctx := context.Background()
	schedules, _, err := w.db.Schedules(ctx, row.ScheduleFilter{Limit: 1000})
	if err != nil {
		panic(err)
	}
	for _, s := range schedules {
		runs, err := w.db.Runs(ctx, s.ID, 0, math.MaxInt)
		if err != nil {
			panic(err)
		}
		for _, r := range runs {
			w.note("db", journal.Tick, journal.Event{ID: s.ID, Detail: encoded(r)})
		}
	}
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and text alone
	}
	return string(text)
}

func rowEvent(r *row.Row, whole bool) journal.Event {
	e := journal.Event{
		ID: r.ID, Version: r.Version, Status: r.Status.String(), Attempt: r.Attempt, CrashCount: r.CrashCount,
		Executor: r.Executor.String(), Due: r.Due.Std(), Expected: r.Expected.Std(),
	}
	if whole {
		e.Tag, e.Key, e.Body = r.Tag, r.Key, string(r.Body)
	}
	return e
}

func (w *world) note(node string, kind journal.Kind, e journal.Event) {
	e.At, e.Node, e.Kind = time.Now().UTC(), node, kind
	w.book.Append(e)
}

func (w *world) isCalm() bool {
	select {
	case <-w.calm:
		return true
	default:
		return false
	}
}

// rest waits for d, and reports whether that has passed before the faults ended.
func (w *world) rest(d time.Duration) bool { return wait(d, w.calm) }

// wait waits for d, and reports whether that has passed before a channel was closed.
func wait(d time.Duration, ends <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ends:
		return false
	}
}

func (w *world) alive() []*life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lives)
}

// anyLife picks one of the lives that take part, with its engine: nil without a life, or while its engine is starting.
func (w *world) anyLife(d draw) (*life, *engine.Engine) {
	lives := w.alive()
	if len(lives) == 0 {
		return nil, nil
	}
	l := lives[d.IntN(len(lives))]
	return l, l.running()
}

// in returns the life of a slot, nil while it has none.
func (w *world) in(slot int) *life {
	for _, l := range w.alive() {
		if l.slot == slot {
			return l
		}
	}
	return nil
}

// accepted adds a task to those that clients change.
func (w *world) accepted(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, id)
}

// someTask picks a task among the latest.
func (w *world) someTask(d draw) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) == 0 {
		return 0
	}
	return w.tasks[len(w.tasks)-1-d.IntN(min(len(w.tasks), 30))]
}
