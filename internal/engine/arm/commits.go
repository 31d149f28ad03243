package arm

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

// Commits watches for the commit of rows that were written in a caller's transaction. They are armed when a plain read
// has seen them, because a claim would wait for the transaction's locks. After lastCommitLook the look-ahead finds
// them.
type Commits struct {
	*deps
	arm *Arm

	mu   sync.Mutex // taken before the locks of the run queue
	open []uncommitted
	// looking has the rows that are being read. True says that their transaction has ended meanwhile.
	looking map[int64]bool
	wake    chan struct{}
	// ended says that a transaction has ended.
	ended chan struct{}
}

type uncommitted struct {
	due   row.Due
	next  time.Time
	wait  time.Duration
	until time.Time
}

const (
	firstCommitLook   = 2 * time.Millisecond
	longestCommitWait = 256 * time.Millisecond // between two looks: how late a task starts after a long transaction
	lastCommitLook    = 5 * time.Second
	commitLooks       = 500 // rows in one look
)

func newCommits(c *deps, arm *Arm) *Commits {
	return &Commits{deps: c, arm: arm, wake: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

// Committing watches for the commit of rows that the look-ahead might see too late.
func (a *Arm) Committing(rows ...row.Due) { a.Commits.add(rows...) }

// add watches rows.
func (c *Commits) add(rows ...row.Due) {
	now := time.Now()
	soon := row.MaxTime // without an anchor any may be due soon
	if now := c.Now(); !now.IsZero() {
		soon = now.Add(c.cfg.Window + c.cfg.LookAhead)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range rows {
		if d.Due <= soon && c.mineToWatch(d) {
			c.open = append(c.open, uncommitted{
				due: d, next: now.Add(firstCommitLook), wait: firstCommitLook, until: now.Add(lastCommitLook),
			})
		}
	}
	if len(c.open) > 0 {
		table.Signal(c.wake)
	}
}

// mineToWatch reports whether this node arms the row, or tells others of it. It arms a new row by its share, and a
// rescheduled one because it wrote it.
func (c *Commits) mineToWatch(d row.Due) bool {
	open, runs := c.arm.Tags.takes(d.Tag)
	return c.cfg.Waker != nil && !runs || c.arm.Mine(d.ID, d.Due, d.Tag) || d.Version > 0 && open
}

// Committed looks at once for the rows, whose transaction has ended.
func (c *Commits) Committed(ids []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := make(map[int64]bool, len(ids))
	for _, id := range ids {
		ended[id] = true
		if _, reading := c.looking[id]; reading {
			c.looking[id] = true
		}
	}
	for i := range c.open {
		if ended[c.open[i].due.ID] {
			c.open[i].next, c.open[i].wait = time.Time{}, firstCommitLook
		}
	}
	table.Signal(c.ended)
}

// Loop looks for commits until ctx ends.
func (c *Commits) Loop(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
		for c.look() {
			select {
			case <-time.After(firstCommitLook):
			case <-c.ended:
			case <-ctx.Done():
				return
			}
		}
	}
}

// look reads the rows whose turn it is, and arms those that are committed. It reports whether others are awaited.
func (c *Commits) look() bool {
	turn := c.turn()
	if len(turn) == 0 {
		return c.Awaited()
	}
	ctx, cancel := c.Call()
	defer cancel()
	seen, _ := c.ReadBack(ctx, "looking for commits", row.IDsOf(turn, func(u uncommitted) int64 { return u.due.ID }))
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, u := range turn {
		s, committed := seen[u.due.ID]
		switch {
		case committed && s.Version >= u.due.Version:
			// After a rollback another process may have brought the row to the same version, or saved another under the
			// id.
			if s.Status == row.Pending && s.Version == u.due.Version && s.Due == u.due.Due {
				c.arm.writtenSoon(u.due)
			}
		case now.Before(u.until):
			u.wait = min(2*u.wait, longestCommitWait)
			if c.looking[u.due.ID] { // the read may have been too early
				u.wait = 0
			}
			u.next, u.wait = now.Add(u.wait), max(u.wait, firstCommitLook)
			c.open = append(c.open, u)
		}
	}
	return len(c.open) > 0
}

// turn takes out the rows that are to be read now.
func (c *Commits) turn() (turn []uncommitted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	rest := c.open[:0]
	for _, u := range c.open {
		if len(turn) < commitLooks && !u.next.After(now) {
			turn = append(turn, u)
		} else {
			rest = append(rest, u)
		}
	}
	c.open = rest
	c.looking = make(map[int64]bool, len(turn))
	for _, u := range turn {
		c.looking[u.due.ID] = false
	}
	return turn
}

// Awaited reports whether a row waits for its commit.
func (c *Commits) Awaited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}
