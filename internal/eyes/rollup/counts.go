package rollup

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// MaxTags is how many tags a process counts apart. The others share [row.OtherTags].
const MaxTags = 200

// Counts is what a process has counted since it was last taken. Counting takes no lock and no memory, except for the
// first task of a tag.
type Counts struct {
	byTag atomic.Pointer[map[string]*counters] // replaced, never changed
	full  atomic.Bool                          // no further tag is counted apart
	other counters

	mu sync.Mutex // taken to replace byTag; innermost
}

type counters struct {
	completed, retried, failed, lost atomic.Int64

	max  atomic.Int64 // in microseconds
	late [row.LateClasses]atomic.Int64
}

// NewCounts returns counts that are zero.
func NewCounts() *Counts {
	c := new(Counts)
	c.byTag.Store(&map[string]*counters{})
	return c
}

// Event counts what has become of a task of the tag. Kinds that are not shown over time are left out.
func (c *Counts) Event(tag string, kind delaytask.EventKind) {
	switch kind {
	case delaytask.EventCompleted:
		c.of(tag).completed.Add(1)
	case delaytask.EventRetried:
		c.of(tag).retried.Add(1)
	case delaytask.EventFailed:
		c.of(tag).failed.Add(1)
	case delaytask.EventRescued:
		c.of(tag).lost.Add(1)
	}
}

// Late counts the start of a first attempt.
func (c *Counts) Late(tag string, late time.Duration) {
	of, micros := c.of(tag), late.Microseconds()
	of.late[row.LateClass(late)].Add(1)
	for most := of.max.Load(); micros > most && !of.max.CompareAndSwap(most, micros); most = of.max.Load() {
	}
}

func (c *Counts) of(tag string) *counters {
	if known := (*c.byTag.Load())[tag]; known != nil {
		return known
	}
	if c.full.Load() {
		return &c.other
	}
	return c.add(tag)
}

func (c *Counts) add(tag string) *counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	byTag := *c.byTag.Load()
	if known := byTag[tag]; known != nil {
		return known
	}
	if len(byTag) >= MaxTags {
		c.full.Store(true)
		return &c.other
	}
	if !delaytask.ValidTag(tag) { // of a row that was written by hand
		return &c.other
	}
	byTag = maps.Clone(byTag)
	byTag[tag] = new(counters)
	c.byTag.Store(&byTag)
	return byTag[tag]
}

// Keep makes room where no further tag is counted apart: it drops the tags that are not wanted. What such a tag counts
// at this moment may be lost.
func (c *Counts) Keep(wanted func(tag string) bool) {
	if !c.full.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	byTag := maps.Clone(*c.byTag.Load())
	maps.DeleteFunc(byTag, func(tag string, _ *counters) bool { return !wanted(tag) })
	c.byTag.Store(&byTag)
	c.full.Store(len(byTag) >= MaxTags)
}

// Take returns what was counted since the last call, of each tag that has something, in the order of the tags.
func (c *Counts) Take() (taken []row.Rollup) {
	byTag := *c.byTag.Load()
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		if r, some := byTag[tag].take(); some {
			r.Tag = tag
			taken = append(taken, r)
		}
	}
	if r, some := c.other.take(); some {
		r.Tag = row.OtherTags
		taken = append(taken, r)
	}
	return taken
}

func (c *counters) take() (r row.Rollup, some bool) {
	r = row.Rollup{
		Completed: c.completed.Swap(0), Retried: c.retried.Swap(0), Failed: c.failed.Swap(0), Lost: c.lost.Swap(0),
		Max: time.Duration(c.max.Swap(0)) * time.Microsecond,
	}
	for class := range c.late {
		if c.late[class].Load() != 0 {
			r.Late = append(r.Late, row.ClassCount{Class: class, N: c.late[class].Swap(0)})
		}
	}
	// A call between the count of a start and its lateness finds the one, and the next call the other alone.
	return r, r.Completed|r.Retried|r.Failed|r.Lost != 0 || len(r.Late) > 0 || r.Max > 0
}
