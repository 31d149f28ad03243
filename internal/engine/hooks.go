package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// errLeasesLost is what OnFailed is told of a task that a rescue failed; its row holds the particulars.
var errLeasesLost = errors.New("the task's lease was lost too often, or its last attempt was")

// errNotFinished is what the log says of an attempt whose holder did not end it in time.
var errNotFinished = errors.New("handed out and not finished within its lease")

// attemptFailed reports an attempt that another one follows, at next.
func (c *core) attemptFailed(r *row.Row, err error, next row.Time) {
	c.Log.Warn("attempt failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err}, "next_attempt_at", next.Std())
}

// taskFailed reports a task that has failed for good.
func (c *core) taskFailed(r *row.Row, due row.Time, err error) {
	c.Log.Error("task failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err})
	c.onFailed(r, due, err)
}

// firstLine is how the log shows the error of a user's code. Handlers would print all of it, and some of them its
// stack.
type firstLine struct{ err error }

// longestLogged bounds an error in the log, in bytes.
const longestLogged = 1 << 10

func (l firstLine) LogValue() slog.Value {
	text, _, _ := strings.Cut(fmt.Sprint(l.err), "\n") // a typed nil inside must not panic
	return slog.StringValue(row.Clip(text, longestLogged))
}

// onFailed calls the user's hook outside of everything that could wait for it.
func (c *core) onFailed(r *row.Row, due row.Time, err error) {
	if c.cfg.OnFailed == nil {
		return
	}
	task := taskOf(r, due)
	c.hook("OnFailed", r.ID, func() { c.cfg.OnFailed(c.Life, task, err) })
}

// onRescued calls the user's hook likewise.
func (c *core) onRescued(r *row.Row) {
	if c.cfg.OnRescued == nil {
		return
	}
	task := taskOf(r, r.Due)
	c.hook("OnRescued", r.ID, func() { c.cfg.OnRescued(c.Life, task) })
}

// hook runs a user's function. A stop waits for it for a while only: it may never return.
func (c *core) hook(name string, id int64, call func()) {
	c.hooks.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				c.Log.Error("a hook panicked", "hook", name, "task", id, "panic", v)
			}
		}()
		call()
	})
}
