package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// flight is what was picked together. It is claimed part by part; when the database refuses a part for one of its rows,
// its halves are claimed instead, until that row is alone.
type flight struct {
	refused int  // parts that were
	taken   bool // of one that was not, rows were won

	mu    sync.Mutex
	parts []part // that have no answer yet; the first is being claimed
}

// part is what one statement claims. The mark tells rows that are handed to a pop from those that a processor runs.
type part struct {
	items []*runqueue.Item
	mark  string
}

// first returns the part whose turn it is, and whether there is one.
func (f *flight) first() (part, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.parts) == 0 {
		return part{}, false
	}
	return f.parts[0], true
}

// answered takes out the first part. Its halves, if there are any, are claimed after the others: of many rows that are
// refused some may be together, and the rest shall not wait until each of them is alone.
func (f *flight) answered(halves []part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = append(slices.Clone(f.parts[1:]), halves...)
}

// rest takes out the parts of the mark behind the first and returns their rows.
func (f *flight) rest(mark string) (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	like, others := split(f.parts[1:], func(p part) bool { return p.mark == mark })
	f.parts = append(f.parts[:1:1], others...)
	for _, p := range like {
		items = append(items, p.items...)
	}
	return items
}

// open returns the rows that have no answer yet.
func (f *flight) open() (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		items = append(items, p.items...)
	}
	return items
}

// mostRefused is how many parts of a flight may be refused before rows of one are won. One row among 500 takes ten.
// Where it is more than this it is hardly some rows that are refused but all, by a trigger for instance, and a
// statement for each would only burden the database.
const mostRefused = 32

// apart returns the halves of a part that was refused for one of its rows. That row, once it is alone, is let go.
func (c *claimer) apart(f *flight, p part, err error) (halves []part) {
	f.refused++
	switch half := len(p.items) / 2; {
	case half == 0:
		c.turnAway(p.items[0], err)
		return nil
	case f.refused > mostRefused && !f.taken:
		c.outcasts.tooMany(time.Now())
		c.later(append(f.rest(p.mark), p.items...), c.outcasts.wait(time.Now()))
		return nil
	case f.refused == 1 && c.outcasts.many(time.Now()):
		c.later(p.items, c.outcasts.wait(time.Now()))
		return nil
	default:
		return []part{{p.items[:half], p.mark}, {p.items[half:], p.mark}}
	}
}

// turnAway lets a row go that the database refuses to have claimed, after a moment in which no look shall find it. It
// is found again if it is due in the table; its timer may have been older than what is there.
func (c *claimer) turnAway(it *runqueue.Item, err error) {
	if c.outcasts.isNew(row.Ref{ID: it.ID, Version: it.Version}, time.Now()) {
		c.Log.Error("the database refuses to let a task start; mend its row, or what refuses it", "task", it.ID, "tag", it.Tag(),
			"version", it.Version, "err", err)
	}
	c.runqueue.Yield(it, runqueue.Slot|runqueue.Turn)
	d := c.outcasts.wait(time.Now())
	c.Go(func() {
		lifecycle.Sleep(c.Life, d)
		c.runqueue.Release(it, runqueue.Ended)
		c.runqueue.ScanWake.Set() // sightings were turned away while it was owned
	})
}

// claimRefused is the pause after a claim that was refused for what somebody has to mend: about two seconds.
const claimRefused = 8
