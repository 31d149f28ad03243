package engine

import (
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// release puts executing rows back to pending without costing an attempt, as far as they are still as they were seen.
// It returns the rows as they are afterwards.
func (c *core) release(seen []row.State, why string) (released []row.Row) {
	if len(seen) == 0 {
		return nil
	}
	ids, versions := make([]int64, len(seen)), make(map[int64]int64, len(seen))
	for i, s := range seen {
		ids[i], versions[s.ID] = s.ID, s.Version
	}
	ctx, cancel := c.Call()
	defer cancel()
	rows, broken, err := c.store.Get(ctx, nil, ids)
	if err != nil {
		c.Failed("releasing", err)
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
		if r.FirstStart() { // nobody was handed it
			change.Execution = 0
		}
		applied, err := c.update(ctx, []row.Change{change})
		if err != nil {
			c.Failed("releasing", err)
			continue
		}
		if applied == 1 {
			c.Log.Info("released", "task", r.ID, "tag", r.Tag, "version", r.Version, "why", why)
			r.Status, r.Version, r.Due, r.Attempt = change.To, r.Version+1, change.Due, change.Attempt
			released = append(released, r)
		}
	}
	return released
}

// giveBack releases rows that were claimed and did not start. That a lease is over is this process's own reckoning: the
// row may be executing still, and a rescue would count a crash that was none. The fence refuses what is in other hands.
func (r *runner) unclaim(waiting []*runqueue.Item) {
	for _, it := range waiting {
		a := attemptOf(it)
		r.settler.add(a, released(a, r.now()))
	}
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
		Execution: r.Execution, Finish: r.Finish, ErrorStack: r.ErrorStack, Errors: r.Errors, Executor: r.Executor, SameExecutor: true,
	}
}

// discard fails rows that cannot be decoded, each alone.
func (c *core) discard(broken []row.Broken) {
	if len(broken) == 0 {
		return
	}
	ctx, cancel := c.Call()
	defer cancel()
	if err := c.store.Discard(ctx, broken); err != nil {
		c.Failed("failing rows that cannot be decoded", err)
		return
	}
	for _, b := range broken {
		c.Log.Error("a row cannot be decoded and is set to failed; repair it and retry the task", "task", b.ID,
			"version", b.Version, "err", b.Reason)
	}
}
