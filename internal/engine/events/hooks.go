package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// hooks are the functions that a user has set for the ends of tasks.
type hooks struct {
	failed  func(ctx context.Context, task *delaytask.Task, err error)
	rescued func(ctx context.Context, task *delaytask.Task)
	running sync.WaitGroup
}

// ErrLeasesLost is what OnFailed is told of a task that a rescue failed; its row holds the particulars.
var ErrLeasesLost = errors.New("the task's lease was lost too often, or its last attempt was")

// AttemptFailed reports an attempt that another one follows, at next.
func (e *Events) AttemptFailed(r *row.Row, err error, next row.Time) {
	e.Log.Warn("attempt failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err}, "next_attempt_at", next.Std())
}

// TaskFailed reports a task that has failed for good.
func (e *Events) TaskFailed(r *row.Row, due row.Time, err error) {
	e.Log.Error("task failed", "task", r.ID, "tag", r.Tag, "version", r.Version, "attempt", r.Attempt,
		"max_attempts", r.MaxAttempts, "err", firstLine{err})
	e.OnFailed(r, due, err)
}

// firstLine is how the log shows the error of a user's code. Handlers would print all of it, and some of them its
// stack.
type firstLine struct{ err error }

// longestLogged bounds an error in the log, in bytes.
const longestLogged = 1 << 10

func (l firstLine) LogValue() slog.Value {
	text, _, _ := strings.Cut(fmt.Sprint(l.err), "\n") // a typed nil inside must not panic
	return slog.StringValue(row.Shorten(text, longestLogged))
}

// OnFailed calls the user's hook outside of everything that could wait for it.
func (e *Events) OnFailed(r *row.Row, due row.Time, err error) {
	if e.hooks.failed == nil {
		return
	}
	task := TaskOf(r, due)
	e.hook("OnFailed", r.ID, func() { e.hooks.failed(e.Life, task, err) })
}

// OnRescued calls the user's hook likewise.
func (e *Events) OnRescued(r *row.Row) {
	if e.hooks.rescued == nil {
		return
	}
	task := TaskOf(r, r.Due)
	e.hook("OnRescued", r.ID, func() { e.hooks.rescued(e.Life, task) })
}

// hook runs a user's function. A stop waits for it for a while only: it may never return.
func (e *Events) hook(name string, id int64, call func()) {
	e.hooks.running.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				e.Log.Error("a hook panicked", "hook", name, "task", id, "panic", v)
			}
		}()
		call()
	})
}

// WaitForHooks waits for the functions of the user that run, until ctx ends.
func (e *Events) WaitForHooks(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		e.hooks.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		e.Log.Error("a hook has not returned; the scheduler stops without it")
	}
}
