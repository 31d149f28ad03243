package engine

import (
	"math"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/timer"
)

// hands knows every row that this process has in hand, and where. A row is in at most one place: a timer in the heap, an item in
// the lines, or held by an open claim, a worker or a pop. Timer, scan, look-ahead, peek, pop and save all go through it, so that
// no two parts of one process ever claim the same row.
type hands struct {
	mu     sync.Mutex
	heap   timer.Heap
	lines  lines
	held   map[int64]*item
	limits limits
	closed bool

	timerWake wake // the head of the heap may have changed
	claimWake wake // something waits in the lines, or a slot became free
	rivals    wake // many claims were in vain: there may be nodes that are not known here yet
	scanWake  wake // rows that are overdue were forgotten: they have to be read again
}

// limits bounds what the hands hold.
type limits struct {
	heap    int // timers; over it the latest-due are dropped, and the look-ahead finds them again in time
	backlog int // overdue rows of one tag that wait in memory
}

func newHands(workers, quarantine int, l limits) *hands {
	return &hands{
		lines:     newLines(workers, quarantine),
		held:      map[int64]*item{},
		limits:    l,
		timerWake: make(wake, 1),
		claimWake: make(wake, 1),
		rivals:    make(wake, 1),
		scanWake:  make(wake, 1),
	}
}

// wake is a channel of capacity one.
type wake chan struct{}

// set leaves a message in the channel; a message that is already there says the same.
func (w wake) set() {
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
func (h *hands) arm(d row.Due, own bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || !h.free(d.ID, d.Version, d.Due) {
		return
	}
	h.set(entry(d, h.lines.line(d.Tag), own))
	h.heap.Trim(h.limits.heap, h.disarmed)
	if head, ok := h.heap.Peek(); ok && head.ID == d.ID {
		h.timerWake.set()
	}
}

// free reports whether a sighting may take the row's place, and clears an older one out of the lines.
func (h *hands) free(id, version int64, due row.Time) bool {
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
func (h *hands) keeps(id, version int64) bool {
	it, held := h.held[id]
	if held && it.out != 0 && version > it.out {
		delete(h.held, id)
		return false
	}
	return held
}

// handOut notes under which version the holder of a token has the row.
func (h *hands) handOut(it *item, version int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it.out = version
	h.acquitted(it)
}

// acquit notes that a crash of this process could not count against the row any more. The row stays held.
func (h *hands) acquit(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acquitted(it)
}

func (h *hands) acquitted(it *item) {
	if h.lines.suspects.acquit(it) {
		h.claimWake.set()
	}
}

// due puts sightings of rows that are due by now into the lines, past the heap. It returns how many of them were taken.
func (h *hands) due(ds []row.Due, backlog bool, now row.Time) (taken int) {
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
		h.lines.push(&item{Entry: e, line: line, fired: now})
		taken++
	}
	if taken > 0 {
		h.claimWake.set()
	}
	return taken
}

// setRoundTrip tells how long a claim takes as a rule.
func (h *hands) setRoundTrip(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.roundTrip = d
}

// counts is how much the hands hold.
type counts struct {
	timers  int // that are armed
	waiting int // rows in the lines
	held    int // rows

	busy     int // rows that are claimed for a worker, or being claimed
	running  int // slots in which a row runs
	suspects int // that a crash of this process would count against

	open  int // tags that are served here and not paused
	named int // tags that are known
	lines int // numbers of tags, free ones among them
}

func (h *hands) counts() counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.lines
	return counts{
		timers: h.heap.Len(), waiting: len(l.waiting), held: len(h.held),
		busy: l.busy, running: l.running, suspects: len(l.suspects.held),
		open: l.open, named: len(l.byTag), lines: len(l.byNumber),
	}
}

// holds reports whether an open claim, a worker or a pop has the row.
func (h *hands) holds(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, held := h.held[id]
	return held
}

// pick takes up to most waiting rows of one line that have a free place, place included. They are held from then on, until let
// go.
func (h *hands) pick(most int, now row.Time, backlog bool) []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines.measure(time.Now())
	if h.lines.age(now.Add(-overdue), h.limits.backlog) {
		h.scanWake.set()
	}
	picked := h.lines.pick(most, backlog)
	for _, it := range picked {
		h.held[it.ID] = it
	}
	return picked
}

// freeSlot gives the slot of a picked row back, or takes back what was promised to a pop; the row stays held. It is safe to call
// more than once.
func (h *hands) freeSlot(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines.release(it) {
		h.claimWake.set()
	}
}

// standBack gives the slot of a row back, and its turn as a suspect: it was surely not claimed, or waits for somebody else's
// transaction. The row stays held.
func (h *hands) standBack(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	released, acquitted := h.lines.release(it), h.lines.suspects.acquit(it)
	if released || acquitted {
		h.claimWake.set()
	}
}

// letGo ends the hold, and the slot with it. It is safe to call more than once, also when the row is held anew by then.
func (h *hands) letGo(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(it)
}

func (h *hands) end(it *item) {
	h.drop(it)
	released, acquitted := h.lines.release(it), h.lines.suspects.acquit(it)
	if released || acquitted {
		h.claimWake.set()
	}
}

// settled ends the hold of a row whose result is stored. harmless says that it has run here, and will not again.
func (h *hands) settled(it *item, harmless bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if harmless {
		h.lines.suspects.survive(it)
	}
	h.end(it)
}

// putBack returns a picked row that was not claimed to the line that it came from.
func (h *hands) putBack(it *item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(it)
	h.lines.release(it)
	h.lines.suspects.acquit(it)
	it.line = h.lines.line(it.line.tag) // it held no slot, so its line may have been forgotten
	h.lines.push(it)
	h.claimWake.set()
	h.timerWake.set() // it may have become nearly due meanwhile
}

func (h *hands) drop(it *item) {
	if h.held[it.ID] == it {
		delete(h.held, it.ID)
	}
}

// serve says whether tasks of a tag may be taken here, and how many of them workers may run at once. Rows of a closed tag that
// wait are forgotten; rows that are held go on.
func (h *hands) serve(tag string, open bool, limit int) {
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
	h.claimWake.set()
}

// room returns how many overdue rows of the tag may still be taken into memory.
func (h *hands) room(tag string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, known := h.lines.byTag[tag]
	if !known {
		return h.limits.backlog
	}
	return h.limits.backlog - len(line.backlog)
}

// await notes that a scan waits for room with rows that are older than what the backlog has.
func (h *hands) await(tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line, known := h.lines.byTag[tag]; known {
		line.awaited = time.Now()
	}
}

// withTaker returns those of the tags that a row could be taken of at once. To look for rows of the others would only fill the
// page.
func (h *hands) withTaker(tags []string) (taken []string) {
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
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.heap.Clear()
	h.lines.clear()
}

// dueWithin reports whether a timer fires by then.
func (h *hands) dueWithin(t row.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	head, ok := h.heap.Peek()
	return ok && head.Due <= t
}
