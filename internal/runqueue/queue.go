package runqueue

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// hands knows every row that this process has in hand, and where. A row is in at most one place: a timer in the heap, an item in
// the lines, or held by an open claim, a worker or a pop. Timer, scan, look-ahead, peek, pop and save all go through it, so that
// no two parts of one process ever claim the same row.
type Queue struct {
	mu     sync.Mutex
	heap   timer.Heap
	lines  lines
	held   map[int64]*Item
	limits Limits
	closed bool

	TimerWake  Wake // the head of the heap may have changed
	ClaimWake  Wake // something waits in the lines, or a slot became free
	Contention Wake // many claims were in vain: there may be nodes that are not known here yet
	ScanWake   Wake // rows that are overdue were forgotten: they have to be read again
}

// limits bounds what the hands hold.
type Limits struct {
	Timers  int // timers; over it the latest-due are dropped, and the look-ahead finds them again in time
	Backlog int // overdue rows of one tag that wait in memory
}

func New(workers, quarantine int, l Limits) *Queue {
	return &Queue{
		lines:      newLines(workers, quarantine),
		held:       map[int64]*Item{},
		limits:     l,
		TimerWake:  make(Wake, 1),
		ClaimWake:  make(Wake, 1),
		Contention: make(Wake, 1),
		ScanWake:   make(Wake, 1),
	}
}

// wake is a channel of capacity one.
type Wake chan struct{}

// set leaves a message in the channel; a message that is already there says the same.
func (w Wake) Set() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// entry makes a timer entry of a sighting.
func entry(d row.Due, line *tagLine, own bool) timer.Entry {
	return timer.Entry{
		ID: d.ID, Version: d.Version, Due: d.Due, Tag: line.number,
		Priority: int8(min(max(d.Priority, math.MinInt8), math.MaxInt8)), Crashes: uint8(min(max(d.CrashCount, 0), math.MaxUint8)), Own: own,
	}
}

// arm puts a sighting into the heap. A row that is already armed or waiting is replaced when the sighting is newer; one that is
// held is left alone. own marks a timer that fires here whatever the shares say.
func (h *Queue) Arm(d row.Due, own bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.free(d.ID, d.Version, d.Due) {
		return
	}
	h.set(entry(d, h.lines.line(d.Tag), own))
	h.heap.Trim(h.limits.Timers, h.disarmed)
	if head, ok := h.heap.Peek(); ok && head.ID == d.ID {
		h.TimerWake.Set()
	}
}

// free reports whether a sighting may take the row's place, and clears an older one out of the lines.
func (h *Queue) free(id, version int64, due row.Time) bool {
	if h.keeps(id, version) {
		return false
	}
	if e, ok := h.heap.Get(id); ok && (e.Version > version || e.Version == version && e.Due == due) {
		return false
	}
	if it := h.lines.get(id); it != nil {
		if it.Version > version || it.Version == version && it.Due == due {
			return false
		}
		h.lines.drop(it)
	}
	return true
}

// keeps reports whether a row is held that is sighted at the version. The hold of a task that was handed out ends with a
// later version: its holder has ended it on another node.
func (h *Queue) keeps(id, version int64) bool {
	it, held := h.held[id]
	if held && it.out != 0 && version > it.out {
		delete(h.held, id)
		return false
	}
	return held
}

// handOut notes under which version the holder of a token has the row.
func (h *Queue) Lend(it *Item, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it.out = version
	h.yield(it, Turn)
}

// due puts sightings of rows that are due by now into the lines, past the heap. It returns how many of them were taken.
func (h *Queue) AddDue(ds []row.Due, backlog bool, now row.Time) (taken int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range ds {
		if h.keeps(d.ID, d.Version) || d.Due.IsZero() {
			continue // without a due time nobody knows whether it is due: it has to be adopted first
		}
		if e, ok := h.heap.Get(d.ID); ok {
			if e.Version > d.Version {
				continue
			}
			h.heap.Remove(d.ID)
			h.disarmed(e)
		}
		if !h.free(d.ID, d.Version, d.Due) {
			continue
		}
		line := h.lines.line(d.Tag)
		e := entry(d, line, true)
		e.Backlog = backlog
		h.lines.push(&Item{Entry: e, line: line, Fired: now})
		taken++
	}
	if taken > 0 {
		h.ClaimWake.Set()
	}
	return taken
}

// setRoundTrip tells how long a claim takes as a rule.
func (h *Queue) SetRoundTrip(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.roundTrip = d
}

// counts is how much the hands hold.
type Counts struct {
	Timers  int // that are armed
	Waiting int // rows in the lines
	Owned   int // rows

	Claimed     int // rows that are claimed for a worker, or being claimed
	Running     int // slots in which a row runs
	OnProbation int // that a crash of this process would count against

	OpenTags   int // tags that are served here and not paused
	Tags       int // tags that are known
	TagNumbers int // numbers of tags, free ones among them
}

func (h *Queue) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.lines
	return Counts{
		Timers: h.heap.Len(), Waiting: len(l.waiting), Owned: len(h.held),
		Claimed: l.busy, Running: l.running, OnProbation: len(l.suspects.held),
		OpenTags: l.open, Tags: len(l.byTag), TagNumbers: len(l.byNumber),
	}
}

// holds reports whether an open claim, a worker or a pop has the row.
func (h *Queue) Owns(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, held := h.held[id]
	return held
}

// pick takes up to most waiting rows of one line that have a free place, place included. They are held from then on, until let
// go.
func (h *Queue) Pick(most int, now row.Time, backlog bool) []*Item {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.measure(time.Now())
	if h.lines.age(now.Add(-Overdue), h.limits.Backlog) {
		h.ScanWake.Set()
	}
	picked := h.lines.pick(most, backlog)
	for _, it := range picked {
		h.held[it.ID] = it
	}
	return picked
}

// Share is what an owned row has of this process.
type Share uint8

const (
	// Slot is the place that the row was claimed for, or what was promised to a pop.
	Slot Share = 1 << iota
	// Turn is its turn as a suspect.
	Turn
)

// Yield lets a row give up shares: its slot when it runs no more, its turn when a crash of this process cannot count against it. The
// row stays owned. Yield is safe to call more than once.
func (h *Queue) Yield(it *Item, what Share) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.yield(it, what)
}

func (h *Queue) yield(it *Item, what Share) {
	slot := what&Slot != 0 && h.lines.release(it)
	turn := what&Turn != 0 && h.lines.suspects.acquit(it)
	if slot || turn {
		h.ClaimWake.Set()
	}
}

// Reason is why this process owns a row no longer.
type Reason uint8

const (
	// Ended says that another process has the row, or that its result is stored.
	Ended Reason = iota
	// Proven is Ended for a row that has run here and will not again: it did no harm.
	Proven
	// Unclaimed says that the row was not claimed. It goes back to its ready queue.
	Unclaimed
)

// Release ends the ownership of a row, and all its shares with it. It is safe to call more than once, also when the row is owned anew
// by then.
func (h *Queue) Release(it *Item, why Reason) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == Proven {
		h.lines.suspects.survive(it)
	}
	if h.held[it.ID] == it {
		delete(h.held, it.ID)
	}
	h.yield(it, Slot|Turn)
	if why == Unclaimed {
		it.line = h.lines.line(it.line.tag) // it held no slot, so its line may have been forgotten
		h.lines.push(it)
		h.ClaimWake.Set()
		h.TimerWake.Set() // it may have become nearly due meanwhile
	}
}

// serve says whether tasks of a tag may be taken here, and how many of them workers may run at once. Rows of a closed tag that
// wait are forgotten; rows that are held go on.
func (h *Queue) Serve(tag string, open bool, limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := h.lines.line(tag)
	if open && !line.open {
		h.lines.open++
	}
	if !open && line.open {
		h.lines.open--
	}
	line.open, line.limit = open, limit
	if open {
		line.slots = limit
	} else {
		h.lines.dropTag(line)
		h.lines.forget(line)
	}
	h.ClaimWake.Set()
}

// room returns how many overdue rows of the tag may still be taken into memory.
func (h *Queue) Room(tag string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, known := h.lines.byTag[tag]
	if !known {
		return h.limits.Backlog
	}
	return h.limits.Backlog - len(line.backlog)
}

// await notes that a scan waits for room with rows that are older than what the backlog has.
func (h *Queue) AwaitRoom(tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line, known := h.lines.byTag[tag]; known {
		line.awaited = time.Now()
	}
}

// withTaker returns those of the tags that a row could be taken of at once. To look for rows of the others would only fill the
// page.
func (h *Queue) WithTaker(tags []string) (taken []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.measure(time.Now())
	for _, tag := range tags {
		if line, known := h.lines.byTag[tag]; known && h.lines.hasTaker(line) {
			taken = append(taken, tag)
		}
	}
	return taken
}

// close forgets everything that is not held, and arms nothing any more: the table still has it.
func (h *Queue) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.heap.Clear()
	h.lines.clear()
}

// dueWithin reports whether a timer fires by then.
func (h *Queue) FiresBy(t row.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	head, ok := h.heap.Peek()
	return ok && head.Due <= t
}

func (h *Queue) SetPeers(nodes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.company = nodes
}

// dealAnew forgets rows of the backlog that are another node's. It is for when claims were in vain, because others have got these rows
// as well. Should they not run them after all, a later scan finds them again.
func (h *Queue) Redistribute(mine func(id int64, tag string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines.working {
		line.backlog = slices.DeleteFunc(line.backlog, func(it *Item) bool {
			if mine(it.ID, line.tag) {
				return false
			}
			delete(h.lines.waiting, it.ID)
			return true
		})
	}
}

// claimable reports whether something waits in the lines, or fires by then.
func (h *Queue) Claimable(until row.Time) bool {
	if h.FiresBy(until) {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines.waiting) > 0
}

const (
	MaxClaim = 500         // rows in one claim
	Overdue  = time.Second // from here on a row belongs to the scan
)
