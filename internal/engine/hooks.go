package engine

import (
	"errors"

	"github.com/delaytask/delaytask/internal/row"
)

// errLeasesLost is what OnFailed is told of a task that a rescue failed; its row holds the particulars.
var errLeasesLost = errors.New("the task's lease was lost too often, or its last attempt was")

// taskFailed reports a task that has failed for good.
func (c *core) taskFailed(r *row.Row, due row.Time, err error) {
	c.log.Warn("task failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt, "err", err)
	c.onFailed(r, due, err)
}

// onFailed calls the user's hook outside of everything that could wait for it.
func (c *core) onFailed(r *row.Row, due row.Time, err error) {
	if c.cfg.OnFailed == nil {
		return
	}
	task := taskOf(r, due)
	c.hook("OnFailed", r.ID, func() { c.cfg.OnFailed(c.life, task, err) })
}

// onRescued calls the user's hook likewise.
func (c *core) onRescued(r *row.Row) {
	if c.cfg.OnRescued == nil {
		return
	}
	task := taskOf(r, r.Due)
	c.hook("OnRescued", r.ID, func() { c.cfg.OnRescued(c.life, task) })
}

// hook runs a user's function. A stop waits for it for a while only: it may never return.
func (c *core) hook(name string, id int64, call func()) {
	c.hooks.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				c.log.Error("a hook panicked", "hook", name, "task", id, "panic", v)
			}
		}()
		call()
	})
}
