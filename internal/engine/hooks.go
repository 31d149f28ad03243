package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// hooks calls the functions that a user has set for the ends of tasks, and logs what they are told.
type hooks struct {
	life    *lifecycle.Lifecycle
	failed  func(ctx context.Context, task *processor.Task, err error)
	rescued func(ctx context.Context, task *processor.Task)
	running sync.WaitGroup
}

// errLeasesLost is what OnFailed is told of a task that a rescue failed; its row holds the particulars.
var errLeasesLost = errors.New("the task's lease was lost too often, or its last attempt was")

// errNotFinished is what the log says of an attempt whose holder did not end it in time.
var errNotFinished = errors.New("handed out and not finished within its lease")

// attemptFailed reports an attempt that another one follows, at next.
func (h *hooks) attemptFailed(r *row.Row, err error, next row.Time) {
	h.life.Log.Warn("attempt failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err}, "next_attempt_at", next.Std())
}

// taskFailed reports a task that has failed for good.
func (h *hooks) taskFailed(r *row.Row, due row.Time, err error) {
	h.life.Log.Error("task failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err})
	h.onFailed(r, due, err)
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
func (h *hooks) onFailed(r *row.Row, due row.Time, err error) {
	if h.failed == nil {
		return
	}
	task := taskOf(r, due)
	h.hook("OnFailed", r.ID, func() { h.failed(h.life.Life, task, err) })
}

// onRescued calls the user's hook likewise.
func (h *hooks) onRescued(r *row.Row) {
	if h.rescued == nil {
		return
	}
	task := taskOf(r, r.Due)
	h.hook("OnRescued", r.ID, func() { h.rescued(h.life.Life, task) })
}

// hook runs a user's function. A stop waits for it for a while only: it may never return.
func (h *hooks) hook(name string, id int64, call func()) {
	h.running.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				h.life.Log.Error("a hook panicked", "hook", name, "task", id, "panic", v)
			}
		}()
		call()
	})
}
