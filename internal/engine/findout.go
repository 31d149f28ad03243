package engine

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// findOut follows a claim whose reply was lost. Reading back proves presence, never absence: the statement may still be applied.
// So the rows stay in hand until a read shows what became of them, or until the lease that the claim would have taken is over.
// What turns out to be claimed is released: it is simpler than to go on with it, and costs no attempt.
func (c *claimer) findOut(items []*item, executor string, sent time.Time) {
	open := make(map[int64]*item, len(items))
	for _, it := range items {
		open[it.ID] = it
	}
	for n := 0; len(open) > 0; n++ {
		if !sleep(c.life, pause(n)) {
			return
		}
		states, err := c.states(open)
		if err != nil {
			c.failed("finding out what a claim did", err)
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
				c.hands.letGo(it)
			case time.Since(sent) > c.longestClaim():
				delete(open, id)
				c.hands.putBack(it)
			}
		}
		for _, r := range c.release(ours, "claim with a lost reply") {
			it := open[r.ID]
			delete(open, r.ID)
			c.hands.letGo(it)
			c.arm.written(dueOf(&r))
		}
	}
}

// longestClaim is how long an abandoned claim statement can still matter.
func (c *claimer) longestClaim() time.Duration { return callTimeout + c.cfg.TTR }

func (c *claimer) states(items map[int64]*item) (map[int64]row.State, error) {
	ids := make([]int64, 0, len(items))
	for id := range items {
		ids = append(ids, id)
	}
	ctx, cancel := c.call()
	defer cancel()
	found, err := c.store.States(ctx, ids)
	if err != nil {
		return nil, err
	}
	states := make(map[int64]row.State, len(found))
	for _, s := range found {
		states[s.ID] = s
	}
	return states, nil
}

// release puts executing rows back to pending without costing an attempt, as far as they are still as they were seen. It returns
// the rows as they are afterwards.
func (c *core) release(seen []row.State, why string) (released []row.Row) {
	if len(seen) == 0 {
		return nil
	}
	ids, versions := make([]int64, len(seen)), make(map[int64]int64, len(seen))
	for i, s := range seen {
		ids[i], versions[s.ID] = s.ID, s.Version
	}
	ctx, cancel := c.call()
	defer cancel()
	rows, broken, err := c.store.Get(ctx, nil, ids)
	if err != nil {
		c.failed("releasing", err)
		return nil
	}
	c.discard(broken)
	now := c.now()
	for _, r := range rows {
		if r.Status != row.Executing || r.Version != versions[r.ID] {
			continue
		}
		// The lease was counted from the later of the claim and the due time that it took.
		change := releaseOf(&r, max(r.Due.Add(-r.TTR), now))
		applied, err := c.store.Update(ctx, nil, []row.Change{change})
		if err != nil {
			c.failed("releasing", err)
			continue
		}
		if applied == 1 {
			c.log.Info("released", "task", r.ID, "tag", r.Tag, "version", r.Version, "why", why)
			r.Status, r.Version, r.Due, r.Attempt = change.To, r.Version+1, change.Due, change.Attempt
			released = append(released, r)
		}
	}
	return released
}

// releaseOf is the change that gives a claimed row back as it was before the claim.
func releaseOf(r *row.Row, due row.Time) row.Change {
	c := changeOf(r, row.Pending)
	c.Due = due
	c.Attempt = max(r.Attempt-1, 0)
	return c
}

// changeOf is a transition of an executing row that keeps everything but its status.
func changeOf(r *row.Row, to row.Status) row.Change {
	return row.Change{
		ID: r.ID, Version: r.Version, From: row.Executing, To: to, Due: r.Due, Attempt: r.Attempt, CrashCount: r.CrashCount,
		Execution: r.Execution, Finish: r.Finish, ErrorStack: r.ErrorStack, Errors: r.Errors, Executor: r.Executor,
	}
}
