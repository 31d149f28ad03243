package runqueue

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// lines holds what is due and waits for a slot. Two lines are served in turn: what has just become due, by priority and due
// time, gets at least half of the free slots; the backlog gets the rest, tag after tag. A line that is empty leaves its slots to
// the other, but a backlog alone leaves some to what falls due meanwhile. Suspects wait apart, and have a turn of their own beside the first
// line: half of what it gets. The caller locks.
type lines struct {
	tagLines
	waiting   map[int64]*Item
	suspects  suspects
	workers   int // slots
	open      int // tags that are served here and not paused
	busy      int // rows that are claimed for a worker, or being claimed
	held      int // by all tags
	beyond    int // rows that may be claimed beyond the slots now
	flow      flow
	company   int           // nodes that share the work, this one among them
	roundTrip time.Duration // of claims, smoothed
	running   int           // slots in which a row runs
	ready     int           // rows that wait for a slot
	gateTurn  bool          // the next slot goes to the backlog
	ahead     int           // worker slots that are held by rows which are not due yet
	pops      popDemands
	turn      bool // the backlog gets the odd place

	suspectsTurn bool // suspects have got the last odd one
}

func newLines(workers, quarantine int) lines {
	return lines{
		tagLines: tagLines{byTag: map[string]*tagLine{}}, waiting: map[int64]*Item{}, suspects: newSuspects(quarantine),
		workers: workers, company: 1,
	}
}

func (l *lines) get(id int64) *Item { return l.waiting[id] }

// push lets a row wait for a slot. A row of a tag that is closed by now is forgotten.
func (l *lines) push(it *Item) {
	if !it.line.open {
		l.forget(it.line)
		return
	}
	l.waiting[it.ID] = it
	l.enqueue(it)
}

func (l *lines) enqueue(it *Item) {
	l.stir(it.line)
	switch {
	case it.early:
		it.line.early.add(it)
	case it.suspect():
		l.suspects.push(it)
	case it.Backlog:
		it.line.backlog = append(it.line.backlog, it)
	default:
		it.line.now.add(it)
		it.line.arrived = append(it.line.arrived, it)
	}
}

// awaits is how long a scan counts as waiting that does not ask again.
const awaits = 100 * time.Millisecond

// age moves rows that no slot was found for in time over to the backlog of their tag, up to most of them or what the tag runs in a
// second, and forgets the rest: the table has them. So a tag that gets more than it can run neither starves the others nor fills the
// memory, and one that has got a great many quick ones at once need not read them again, past the traces of all that it has run. It
// reports whether rows were forgotten.
func (l *lines) age(before row.Time, most int) (forgotten bool) {
	for _, line := range l.working {
		most := max(most, line.flow.within(time.Second))
		if time.Since(line.awaited) < awaits {
			most = 0
		}
		for len(line.arrived) > 0 && (line.arrived[0].in != &line.now || line.arrived[0].Due < before) {
			it := line.arrived[0]
			line.arrived[0] = nil
			line.arrived = line.arrived[1:]
			if it.in != &line.now {
				continue
			}
			line.now.remove(it)
			if len(line.backlog) < most {
				it.Backlog = true
				line.backlog = append(line.backlog, it)
			} else {
				delete(l.waiting, it.ID)
				forgotten = true
			}
		}
	}
	return forgotten
}

func (l *lines) drop(it *Item) {
	delete(l.waiting, it.ID)
	isIt := func(other *Item) bool { return other == it }
	switch {
	case it.in != nil:
		it.in.remove(it)
	case it.suspect():
		l.suspects.drop(isIt)
	default:
		it.line.backlog = slices.DeleteFunc(it.line.backlog, isIt)
	}
}

// dropTag takes everything of a tag out of the lines.
func (l *lines) dropTag(line *tagLine) {
	suspects := l.suspects.drop(func(it *Item) bool { return it.line == line })
	for _, it := range slices.Concat(line.early.items, line.now.items, line.backlog, suspects) {
		delete(l.waiting, it.ID)
	}
	line.clear()
}

// backlogKeeps is the part of the slots that a backlog leaves to what falls due meanwhile.
const backlogKeeps = 8

// pick takes up to most items of one line, each with a place. While both lines have something to run they share what is free,
// one time one and one time the other gets the odd place.
func (l *lines) pick(most int, backlog bool) []*Item {
	both := l.waits(!backlog)
	free := l.workers + l.beyond - l.busy
	if backlog && !both {
		free -= l.workers / backlogKeeps
	}
	n := max(free, 0) + l.pops.left()
	if n <= 0 || len(l.waiting) == 0 {
		return nil
	}
	share := n
	if both {
		share = n / 2
		if n%2 == 1 && l.turn == backlog {
			share++
			l.turn = !l.turn
		}
	}
	n = min(most, share)
	if backlog {
		return l.pickBacklog(nil, n)
	}
	suspects := l.pickSuspects(nil, l.suspectsShare(n))
	picked := append(l.pickTimely(nil, n-len(suspects)), suspects...)
	return l.pickSuspects(picked, n-len(picked))
}

// suspectsShare is how many places suspects get before anybody else: half, and every other odd one, or a stream of younger tasks that
// takes all slots would let them wait for ever.
func (l *lines) suspectsShare(n int) int {
	share := n / suspectsKeep
	if n%2 == 1 && !l.suspects.empty() {
		if l.suspectsTurn = !l.suspectsTurn; l.suspectsTurn {
			share++
		}
	}
	return share
}

// waits reports whether a line has a row that somebody could take.
func (l *lines) waits(backlog bool) bool {
	return slices.ContainsFunc(l.working, func(line *tagLine) bool {
		if backlog {
			return len(line.backlog) > 0 && l.hasTaker(line)
		}
		return line.now.Len() > 0 && l.hasTaker(line) || line.early.Len() > 0 && l.mayGoAhead(line)
	})
}

// pickTimely takes what is due now, and then what soon will be.
func (l *lines) pickTimely(picked []*Item, n int) []*Item {
	before := len(picked)
	picked = l.pickNow(picked, n)
	return l.pickEarly(picked, n-(len(picked)-before))
}

// suspectsKeep is the part of the slots that suspects leave to others.
const suspectsKeep = 2

// pickSuspects takes rows that have outlived several processes.
func (l *lines) pickSuspects(picked []*Item, n int) []*Item {
	may := func(it *Item) bool { return l.hasTaker(it.line) }
	for ; n > 0; n-- {
		it := l.suspects.pick(may, l.workers/suspectsKeep)
		if it == nil {
			break
		}
		picked = append(picked, l.occupy(it))
	}
	return picked
}

// pickNow takes the best of all lines of what is due now.
func (l *lines) pickNow(picked []*Item, n int) []*Item {
	for ; n > 0; n-- {
		best := l.best(func(line *tagLine) *Item {
			if line.now.Len() == 0 || !l.hasTaker(line) {
				return nil
			}
			return line.now.head()
		}, byPriority)
		if best == nil {
			break
		}
		best.line.now.remove(best)
		picked = append(picked, l.occupy(best))
	}
	return picked
}

// best returns the best of what the tags offer, nil when none offers anything.
func (l *lines) best(offer func(*tagLine) *Item, before func(a, b *Item) bool) (best *Item) {
	for _, line := range l.working {
		if it := offer(line); it != nil && (best == nil || before(it, best)) {
			best = it
		}
	}
	return best
}

// pickBacklog goes round the tags, one row each.
func (l *lines) pickBacklog(picked []*Item, n int) []*Item {
	for idle := 0; n > 0 && idle < len(l.working); {
		line := l.inTurn()
		if len(line.backlog) == 0 || !l.hasTaker(line) {
			idle++
			continue
		}
		idle = 0
		it := line.backlog[0]
		line.backlog[0] = nil
		line.backlog = line.backlog[1:]
		picked = append(picked, l.occupy(it))
		n--
	}
	return picked
}

// hasSlot reports whether a row of the tag may be claimed for a worker.
func (l *lines) hasSlot(line *tagLine) bool {
	return l.busy < l.workers+l.beyond && line.busy < l.share(line)+line.beyond
}

// hasTaker reports whether anybody may.
func (l *lines) hasTaker(line *tagLine) bool { return l.hasSlot(line) || l.popsTake(line) > 0 }

// occupy gives the row to a worker or to a waiting pop; where both are free they take turns.
func (l *lines) occupy(it *Item) *Item {
	delete(l.waiting, it.ID)
	l.stir(it.line)
	it.ForPop = l.popsTake(it.line) > 0 && (it.line.pops.turn || !l.hasSlot(it.line))
	it.line.pops.turn = !it.ForPop
	if it.ForPop {
		l.promise(it.line, 1)
	} else {
		it.slot = true
		it.line.busy++
		l.busy++
		l.weigh(it.line)
	}
	l.hold(it, it.early)
	return it
}

// release ends what occupy began, once.
func (l *lines) release(it *Item) bool {
	l.hold(it, false)
	switch {
	case it.slot:
		it.slot = false
		it.line.busy--
		l.busy--
	case it.ForPop:
		it.ForPop = false
		l.promise(it.line, -1)
	default:
		return false
	}
	return true
}

func (l *lines) clear() {
	clear(l.waiting)
	l.suspects.clear()
	for _, line := range l.working {
		line.clear()
	}
}
