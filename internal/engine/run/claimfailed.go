package run

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// failed decides what becomes of the rows of a claim that has ended with an error. It returns the halves that are to be
// claimed instead. The comment of package engine lists all reasons why a row is not claimed.
func (c *claimer) failed(f *flight, p part, executor row.Executor, sent time.Time, err error) (parts []part) {
	all := func(do func(items []*runqueue.Item)) func([]*runqueue.Item) []*runqueue.Item {
		return func(items []*runqueue.Item) []*runqueue.Item {
			do(items)
			return nil // rows that are claimed again go through their ready queues
		}
	}
	if table.Fault(err) != nil {
		hinder(p.items, delaytask.LateDatabase)
	}
	rest := table.Policy[*runqueue.Item]{
		Locked:    all(func(items []*runqueue.Item) { c.locked(f, items, sent) }),
		Refused:   all(func(items []*runqueue.Item) { parts = c.halve(f, p, err) }),
		Lost:      all(func(items []*runqueue.Item) { c.followLost(items, executor, sent) }),
		Unapplied: all(c.slowDown),
		Operator:  all(func(items []*runqueue.Item) { c.later(items, lifecycle.Backoff(claimRefused)) }),
	}.After(p.items, err)
	if len(rest) > 0 { // a class without a function above: the safe way is to ask what the statement has done
		c.followLost(rest, executor, sent)
	}
	return parts
}

// followLost gives back the slots of a claim whose reply was lost, and resolves its outcome. A stop waits for that.
// Otherwise what was won would stay executing, and count a crash when its lease is over.
func (c *claimer) followLost(items []*runqueue.Item, executor row.Executor, sent time.Time) {
	for _, it := range items {
		c.runqueue.Yield(it, runqueue.Slot)
	}
	c.open.Add(1)
	c.Go(func() {
		defer c.open.Done()
		c.resolveUnknown(items, executor, sent)
	})
}

// resolveUnknown follows a claim whose reply was lost. Reading back proves that it was applied, never that it was not:
// it may still be applied. So the rows stay owned until a read shows what became of them. Rows that were claimed are
// released, which costs no attempt. Rows that stay as they were for openClaim are claimed anew, so that they are not
// late. The version lets one of the two claims win. Should that be the first, its rows are orphaned claims.
func (c *claimer) resolveUnknown(items []*runqueue.Item, executor row.Executor, sent time.Time) {
	open := make(map[int64]*runqueue.Item, len(items))
	for _, it := range items {
		open[it.ID] = it
	}
	for n := 0; len(open) > 0; n++ {
		if !lifecycle.Sleep(c.Life, lifecycle.Backoff(n)) {
			return
		}
		ctx, cancel := c.Call()
		states, err := c.ReadBack(ctx, "finding out what a claim did", slices.Collect(maps.Keys(open)))
		cancel()
		if err != nil {
			continue
		}
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
		for _, r := range c.PutBack(ours, "claim with a lost reply") {
			it := open[r.ID]
			delete(open, r.ID)
			c.runqueue.Release(it, runqueue.Ended)
			c.arm.Written(r.Sighting())
		}
	}
}

// openClaim is how long a claim may stay of unknown outcome. With the pass for orphaned claims it keeps within the
// bound of the scan.
const openClaim = time.Second

// slowDown lets the rows of a claim wait that the database did not take.
func (c *claimer) slowDown(items []*runqueue.Item) {
	if d := c.notTaken.another(time.Now()); d > 0 {
		c.later(items, d)
	} else {
		c.later(items, lifecycle.Backoff(countTry(items)))
	}
}

// hinder notes why rows could not be claimed.
func hinder(items []*runqueue.Item, why delaytask.LateReason) {
	for _, it := range items {
		it.Hindered = why
	}
}

// countTry counts a claim that has failed, and returns the greatest number of tries among the rows.
func countTry(items []*runqueue.Item) (most int) {
	for _, it := range items {
		it.Tries++
		most = max(most, it.Tries)
	}
	return most
}

// later returns the rows to their ready queues after d. Until then they stay owned, without slots.
func (c *claimer) later(items []*runqueue.Item, d time.Duration) {
	if len(items) == 0 {
		return
	}
	c.withoutSlots(items)
	c.Go(func() {
		lifecycle.Sleep(c.Life, d)
		for _, it := range items {
			c.runqueue.Release(it, runqueue.Unclaimed)
		}
	})
}

// mostRefused is how many parts of a flight may be refused before rows of one are won. One refused row among 500 takes
// ten. With more it is likely that all rows are refused, by a trigger for instance. A statement for each would only
// burden the database.
const mostRefused = 32

// halve returns the halves of a part that was refused for one of its rows. The refused row is held back when it is
// alone.
func (c *claimer) halve(f *flight, p part, err error) (parts []part) {
	f.refused++
	switch {
	case len(p.items) == 1:
		c.holdBack(p.items[0], err)
		return nil
	case f.refused > mostRefused && !f.taken:
		c.unclaimable.tooMany(time.Now())
		c.later(append(f.rest(p.forPop), p.items...), c.unclaimable.wait(time.Now()))
		return nil
	case f.refused == 1 && c.unclaimable.many(time.Now()):
		c.later(p.items, c.unclaimable.wait(time.Now()))
		return nil
	}
	for _, half := range table.Halves(p.items) {
		parts = append(parts, part{half, p.forPop})
	}
	return parts
}

// holdBack lets go of a row whose claim the database refuses, after a pause. Nothing finds the row during the pause;
// later it is found again if it is due in the table.
func (c *claimer) holdBack(it *runqueue.Item, err error) {
	if c.unclaimable.isNew(row.Ref{ID: it.ID, Version: it.Version}, time.Now()) {
		c.Log.Error("the database refuses to let a task start; mend its row, or what refuses it",
			"task", it.ID, "tag", it.Tag(), "version", it.Version, "err", err)
	}
	c.runqueue.Yield(it, runqueue.Slot|runqueue.Turn)
	d := c.unclaimable.wait(time.Now())
	c.Go(func() {
		lifecycle.Sleep(c.Life, d)
		c.runqueue.Release(it, runqueue.Ended)
		c.runqueue.ScanWake.Set() // nothing could add the row while it was owned
	})
}

// claimRefused is the back-off step after a claim that an operator has to mend something for: about two seconds.
const claimRefused = 8

// unclaimable is what is known of rows whose claim was refused.
type unclaimable struct {
	mu    sync.Mutex            // no other lock is taken while it is held
	told  map[row.Ref]time.Time // when the log told of them
	until time.Time             // they are too many to look for each until then
	round time.Time             // when those that wait come back
}

const (
	logAgain       = time.Hour
	maxUnclaimable = 1000 // rows that the log tells of within logAgain
	manyFor        = 2 * time.Second
)

// wait returns how long rows that were refused wait now. They come back together. One by one, each would make a
// statement of its own.
func (o *unclaimable) wait(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.round) {
		o.round = now.Add(lifecycle.Backoff(claimRefused))
	}
	return o.round.Sub(now)
}

// isNew reports whether the log is to tell of the row.
func (o *unclaimable) isNew(ref row.Ref, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = map[row.Ref]time.Time{}
	}
	if at, told := o.told[ref]; told && now.Sub(at) < logAgain {
		return false
	}
	if len(o.told) >= maxUnclaimable {
		maps.DeleteFunc(o.told, func(_ row.Ref, at time.Time) bool { return now.Sub(at) >= logAgain })
		if len(o.told) >= maxUnclaimable {
			return false
		}
	}
	o.told[ref] = now
	return true
}

// tooMany notes that a flight had more refused rows than it may look for. All wait a moment then.
func (o *unclaimable) tooMany(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = now.Add(manyFor)
}

func (o *unclaimable) many(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Before(o.until)
}

func (c *claimer) withoutSlots(items []*runqueue.Item) {
	for _, it := range items {
		c.runqueue.Yield(it, runqueue.Slot|runqueue.Turn)
	}
}
