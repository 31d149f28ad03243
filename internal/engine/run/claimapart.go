package run

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// sendApart takes out the rows of tags that travel apart, claims as many of them as may be claimed now, and returns the
// others.
func (c *claimer) sendApart(items []*runqueue.Item) (rest []*runqueue.Item) {
	apart, rest := table.SplitApart(c.Table, items, (*runqueue.Item).Tag)
	for tag, items := range apart {
		rows, wait := c.apart.Begin(tag, len(items))
		if wait > 0 {
			c.later(items[rows:], wait)
		} else if rows < len(items) {
			c.withoutSlots(items[rows:])
			c.apart.After(tag, func() { c.later(items[rows:], 0) })
		}
		if rows > 0 {
			c.fly(&flight{parts: parts(items[:rows]), apart: tag}, func() {}, func() { c.apart.End(tag) })
		}
	}
	return rest
}

// locked decides about rows whose claim has met a lock. Rows that another transaction holds are left out. Where it
// holds none, it has locked a range: the tags of the rows travel apart from then on.
func (c *claimer) locked(f *flight, items []*runqueue.Item, sent time.Time) {
	rest := c.leaveOutLocked(items, items)
	if len(rest) < len(items) {
		c.later(rest, 0)
		return
	}
	hinder(items, delaytask.LateLocked)
	if f.apart == "" {
		table.MayWait(c.Table, items, (*runqueue.Item).Tag)
		c.later(items, 0)
		return
	}
	c.TellRange(f.apart, sent)
	c.apart.Locked(f.apart, len(items))
	c.later(items, 0)
}

func (c *claimer) passedApart(f *flight) {
	if f.apart != "" {
		c.apart.Passed(f.apart)
	}
}
