package runqueue

import (
	"math"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue/timer"
)

// Queue knows every row that this process may run, and where it is. A row is in at most one place: it has a timer, it
// waits in a ready queue, or this process owns it, for a claim, a slot or a pop. All parts that find rows go through
// the queue, so no two parts of a process claim the same row.
type Queue struct {
	TimerWake  Wake // the first timer may be another one
	ClaimWake  Wake // a row waits in a ready queue, or a place became free
	Contention Wake // many claims were in vain: there may be nodes that are not known here yet
	ScanWake   Wake // overdue rows were forgotten: they have to be read again

	Slots Slots
	Pops  Pops

	// mu guards the fields below, the slots and the pops. Lock order: mu comes before the locks of tags and attempts,
	// which the functions passed to Fire, Redistribute and Expel may take, and after all others. So a caller that holds
	// the lock of a tag or an attempt must not call the queue.
	mu     sync.Mutex
	closed bool
	limits Limits
	tags   tagTable
	timers timers
	ready  ready
	claims claims
	owned  map[int64]*Item
}

// Limits bounds what a queue keeps in memory.
type Limits struct {
	Timers  int // over it the timers that are due last are dropped, and the look-ahead finds their rows again in time
	Backlog int // overdue rows of one tag
}

const (
	// MaxClaim is how many rows one claim takes, at most.
	MaxClaim = 500
	// Overdue is how late a row is that belongs to the backlog, and to the scan.
	Overdue = time.Second
)

// New returns the queue of a process that runs concurrency tasks at once. A task fails for good when it
// has lost as many executors as quarantine says.
func New(concurrency, quarantine int, l Limits) *Queue {
	q := &Queue{
		TimerWake: make(Wake, 1), ClaimWake: make(Wake, 1), Contention: make(Wake, 1), ScanWake: make(Wake, 1),
		limits: l, owned: map[int64]*Item{},
	}
	q.Slots.queue, q.Pops.queue = q, q
	q.tags.byName = map[string]*tagQueue{}
	q.timers.tags, q.timers.most = &q.tags, l.Timers
	q.claims = claims{tags: &q.tags, concurrency: concurrency, peers: 1}
	q.ready = ready{tags: &q.tags, claims: &q.claims, waiting: map[int64]*Item{}, probation: newProbation(quarantine)}
	return q
}

// Wake is a channel of capacity one.
type Wake chan struct{}

// Set leaves a message in the channel. A message that is already there says the same.
func (w Wake) Set() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Serve says whether tasks of a tag may be taken here, and how many of them may run at once. Rows of a closed tag
// that wait are forgotten. Owned rows go on.
func (q *Queue) Serve(name string, open bool, limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tag := q.tags.get(name)
	if open && !tag.open {
		q.claims.open++
	}
	if !open && tag.open {
		q.claims.open--
	}
	tag.open, tag.limit = open, limit
	if open {
		tag.slots = limit
	} else {
		q.ready.dropTag(tag)
		q.tags.forget(tag)
	}
	q.ClaimWake.Set()
}

// SetPeers tells how many nodes share the work, this one among them.
func (q *Queue) SetPeers(nodes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims.peers = nodes
}

// SetRoundTrip tells how long a claim takes as a rule.
func (q *Queue) SetRoundTrip(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims.roundTrip = d
}

// Close forgets all rows that are not owned, because the table has them, and sets no timer any more.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.timers.Clear()
	q.ready.clear()
}

// AddDue lets rows wait in their ready queues that are due by now, backlog in those for overdue rows. It returns how
// many of them were news.
func (q *Queue) AddDue(rows []row.Due, backlog bool, now row.Time) (taken int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range rows {
		if q.keeps(d.ID, d.Version) || d.Due.IsZero() {
			continue // it may not be due: a row without a due time has to be adopted first
		}
		if e, ok := q.timers.Get(d.ID); ok {
			if e.Version > d.Version {
				continue
			}
			q.timers.disarm(d.ID)
		}
		if !q.isNews(d) {
			continue
		}
		tag := q.tags.get(d.Tag)
		e := entry(d, tag, true)
		e.Backlog = backlog
		q.ready.push(&Item{Entry: e, tag: tag, Fired: now, Found: true})
		taken++
	}
	if taken > 0 {
		q.ClaimWake.Set()
	}
	return taken
}

// isNews reports whether d is newer than what the queue knows of the row. If it is, a row that waits with older
// knowledge is dropped from its ready queue.
func (q *Queue) isNews(d row.Due) bool {
	if q.keeps(d.ID, d.Version) {
		return false
	}
	if e, ok := q.timers.Get(d.ID); ok && (e.Version > d.Version || e.Version == d.Version && e.Due == d.Due) {
		return false
	}
	if it := q.ready.waiting[d.ID]; it != nil {
		if it.Version > d.Version || it.Version == d.Version && it.Due == d.Due {
			return false
		}
		q.ready.drop(it)
	}
	return true
}

// keeps reports whether this process owns a row that is seen at the version. A row that was lent is seen at a later
// version when its holder has ended the task on another node. That ends the ownership.
func (q *Queue) keeps(id, version int64) bool {
	it, owned := q.owned[id]
	if owned && it.lent != 0 && version > it.lent {
		delete(q.owned, id)
		return false
	}
	return owned
}

// Room returns how many overdue rows of the tag may still be added.
func (q *Queue) Room(name string) int { return q.limits.Backlog - q.Overdue(name) }

// Overdue returns how many overdue rows of the tag wait.
func (q *Queue) Overdue(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if tag, known := q.tags.byName[name]; known {
		return len(tag.backlog)
	}
	return 0
}

// AwaitRoom notes that a scan waits for room with rows that are older than the backlog.
func (q *Queue) AwaitRoom(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if tag, known := q.tags.byName[name]; known {
		tag.awaited = time.Now()
	}
}

// Redistribute forgets rows of the backlog that are another node's, after claims were in vain because others have
// these rows, too. If they do not run them after all, a later scan finds them.
func (q *Queue) Redistribute(mine func(id int64, tag string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.dropOthers(mine)
}

// WithTaker returns the tags whose rows could be claimed at once. A look for rows of the others would only fill its
// page.
func (q *Queue) WithTaker(names []string) (taken []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims.measure(time.Now())
	for _, name := range names {
		if tag, known := q.tags.byName[name]; known && q.claims.hasTaker(tag) {
			taken = append(taken, name)
		}
	}
	return taken
}

// Counts is how much a queue holds.
type Counts struct {
	Timers      int
	Waiting     int // rows in ready queues
	Owned       int // rows
	Claimed     int // rows that are claimed for a slot, or being claimed
	Running     int // slots that run a row
	OnProbation int // rows that a crash of this process would count against
	OpenTags    int // that are served here and not paused
	Tags        int // that are known
	TagNumbers  int // of tags, free ones among them
}

// Counts returns how much the queue holds.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{
		Timers: q.timers.Len(), Waiting: len(q.ready.waiting), Owned: len(q.owned), Claimed: q.claims.claimed,
		Running: q.Slots.running, OnProbation: len(q.ready.probation.exposed),
		OpenTags: q.claims.open, Tags: len(q.tags.byName), TagNumbers: len(q.tags.byNumber),
	}
}

// Pick takes up to most rows that have a place, either of the backlog or timely ones. This process owns them until
// Release.
func (q *Queue) Pick(most int, now row.Time, backlog bool) []*Item {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claims.measure(time.Now())
	if q.ready.age(now.Add(-Overdue), q.limits.Backlog) {
		q.ScanWake.Set()
	}
	picked := q.ready.pick(most, backlog)
	for _, it := range picked {
		q.owned[it.ID] = it
	}
	return picked
}

// Owns reports whether this process owns the row.
func (q *Queue) Owns(id int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, owned := q.owned[id]
	return owned
}

// Lend notes that the holder of a token has the row at the version. A crash of this process does not count against it
// any more.
func (q *Queue) Lend(it *Item, version int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it.lent = version
	q.yield(it, Turn)
}

// Share is what an owned row takes from others.
type Share uint8

const (
	// Slot is the place that the row was claimed for, a slot or a pop's.
	Slot Share = 1 << iota
	// Turn is its turn on probation.
	Turn
)

// Yield lets a row give up shares: its slot when it needs none any more, its turn when others on probation need not
// wait for it. The row stays owned. Yield is safe to call more than once.
func (q *Queue) Yield(it *Item, what Share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.yield(it, what)
}

func (q *Queue) yield(it *Item, what Share) {
	slot := what&Slot != 0 && q.claims.unclaim(it)
	turn := what&Turn != 0 && q.ready.probation.exonerate(it)
	if slot || turn {
		q.ClaimWake.Set()
	}
}

// Reason is why this process owns a row no longer.
type Reason uint8

const (
	// Ended says that the row is no longer this process's to run: another process has it, its result is stored, or it
	// was released to the table.
	Ended Reason = iota
	// Proven is Ended for a row that has run here and will not again: it did no harm.
	Proven
	// Unclaimed says that the row was not claimed. It goes back to its ready queue.
	Unclaimed
)

// Release ends the ownership of a row, and all its shares with it. It is safe to call more than once, also when the row
// is owned again by then.
func (q *Queue) Release(it *Item, why Reason) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if why == Proven {
		q.ready.probation.prove(it)
	}
	if q.owned[it.ID] == it {
		delete(q.owned, it.ID)
	}
	q.yield(it, Slot|Turn)
	if why == Unclaimed {
		it.tag = q.tags.get(it.tag.name) // it had no place, so its tag may have been forgotten
		q.ready.push(it)
		q.ClaimWake.Set()
		q.TimerWake.Set() // it may have become nearly due meanwhile
	}
}

// timers holds the rows that fall due soon. It counts the timers of each tag, because a tag with a timer is not
// forgotten.
type timers struct {
	timer.Heap
	tags *tagTable
	most int
}

// entry makes a timer of a sighting.
func entry(d row.Due, tag *tagQueue, own bool) timer.Entry {
	return timer.Entry{
		ID: d.ID, Version: d.Version, Due: d.Due, Tag: tag.number, Own: own,
		Priority: int8(min(max(d.Priority, math.MinInt8), math.MaxInt8)),
		Crashes:  uint8(min(max(d.CrashCount, 0), math.MaxUint8)),
	}
}

// arm adds a timer, or replaces the one of the same row. Beyond the bound it drops those that are due last.
func (t *timers) arm(e timer.Entry) {
	old, armed := t.Get(e.ID)
	t.Set(e)
	t.tags.byNumber[e.Tag].armed++
	if armed {
		t.disarmed(old)
	}
	t.Trim(t.most, t.disarmed)
}

// disarm drops the timer of a row.
func (t *timers) disarm(id int64) {
	if e, armed := t.Remove(id); armed {
		t.disarmed(e)
	}
}

// disarmed notes that a timer has left the heap.
func (t *timers) disarmed(e timer.Entry) {
	tag := t.tags.byNumber[e.Tag]
	tag.armed--
	t.tags.forget(tag)
}

// Window is how far ahead of their due times rows are claimed.
type Window struct {
	Near  time.Duration // a row that is due within it waits with what is due now, also for the last slots
	First time.Duration // a row that is due within it has to be claimed
	Last  time.Duration // a row that is due within it is claimed along with others
}

// Arm sets a timer for a row that was seen. A newer sighting replaces the timer, or the row in its ready queue. A row
// that this process owns stays as it is. own marks a timer that fires here whatever this node's share is by then.
func (q *Queue) Arm(d row.Due, own bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.isNews(d) {
		return
	}
	q.timers.arm(entry(d, q.tags.get(d.Tag), own))
	if head, ok := q.timers.First(); ok && head.ID == d.ID {
		q.TimerWake.Set()
	}
}

// Fire moves timers into the ready queues: all that are due within ahead.Last, once one is due within ahead.First. It
// also makes rows ready that are nearly due. mine decides which timers still fire here. Fire returns how long it has
// nothing to do.
func (q *Queue) Fire(now row.Time, ahead Window, mine func(e timer.Entry, tag string) bool) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	near := now.Add(ahead.Near)
	if head, ok := q.timers.First(); ok && head.Due <= now.Add(ahead.First) {
		q.drainDue(now, near, now.Add(ahead.Last), mine)
		q.ClaimWake.Set()
	}
	next, some := q.ready.makeReady(near)
	if some {
		q.ClaimWake.Set()
	}
	wait := next.Sub(near)
	if head, ok := q.timers.First(); ok {
		wait = min(wait, head.Due.Sub(now.Add(ahead.First)))
	}
	return max(wait, 0)
}

// drainDue moves the timers that are due by last into the ready queues.
func (q *Queue) drainDue(now, near, last row.Time, mine func(timer.Entry, string) bool) {
	for {
		e, ok := q.timers.PopBefore(last)
		if !ok {
			return
		}
		tag := q.tags.byNumber[e.Tag]
		if mine(e, tag.name) {
			q.ready.push(&Item{Entry: e, tag: tag, Fired: now, upcoming: e.Crashes < ProbationAt && e.Due > near})
		}
		q.timers.disarmed(e)
	}
}

// FiresBy reports whether a timer fires by then.
func (q *Queue) FiresBy(t row.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firesBy(t)
}

func (q *Queue) firesBy(t row.Time) bool {
	head, ok := q.timers.First()
	return ok && head.Due <= t
}

// Claimable reports whether a row waits in a ready queue, or its timer fires by then.
func (q *Queue) Claimable(until row.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.firesBy(until) || len(q.ready.waiting) > 0
}
