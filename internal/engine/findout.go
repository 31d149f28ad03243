package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// findOut follows a claim whose reply was lost. Reading back proves presence, never absence: the statement may still be
// applied. So the rows stay owned until a read shows what became of them. What turns out to be claimed is released: it
// is simpler than to go on with it, and costs no attempt. Rows that stay as they were for a while are claimed anew,
// lest they be late: the version lets only one of the two claims win, and should it be the old one after all, its rows
// are strays of this process.
func (c *claimer) findOut(items []*runqueue.Item, executor string, sent time.Time) {
	open := make(map[int64]*runqueue.Item, len(items))
	for _, it := range items {
		open[it.ID] = it
	}
	for n := 0; len(open) > 0; n++ {
		if !lifecycle.Sleep(c.Life, lifecycle.Backoff(n)) {
			return
		}
		ctx, cancel := c.Call()
		found, err := c.store.States(ctx, slices.Collect(maps.Keys(open)))
		cancel()
		if err != nil {
			c.Failed("finding out what a claim did", err)
			continue
		}
		states := statesByID(found)
		var ours []row.State
		for id, it := range open {
			s, exists := states[id]
			switch {
			case exists && s.Status == row.Executing && s.Executor == executor:
				ours = append(ours, s)
			case !exists || s.Status != row.Pending || s.Version != it.Version:
				delete(open, id)
				c.runqueue.Release(it, runqueue.Ended)
			case time.Since(sent) > openClaim:
				delete(open, id)
				c.runqueue.Release(it, runqueue.Unclaimed)
			}
		}
		for _, r := range c.release(ours, "claim with a lost reply") {
			it := open[r.ID]
			delete(open, r.ID)
			c.runqueue.Release(it, runqueue.Ended)
			c.arm.written(r.Sighting())
		}
	}
}

// openClaim is how long a claim may stay of unknown outcome. It and the strays' pass keep within the bound of the scan.
const openClaim = time.Second
