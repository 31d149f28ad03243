package processor

import (
	"context"
	"time"
)

// Task is what a processor is handed. What is stored of it is a [TaskRow].
type Task struct {
	ID       int64
	Tag      string
	Key      string            // the caller's own name for the task, "" when it has none
	Body     []byte            // as it was stored; empty when it has none
	Attempt  int               // 1 for the first
	Version  int64             // with ID the lease token: pass both to systems that can refuse an older one
	Expected time.Time         // UTC; when the task was promised to start: its first due time, moved only by Reschedule
	Due      time.Time         // UTC; when this attempt was due
	Headers  map[string]string // nil when it has none
	Priority int               // −100 to 100, larger first
}

// Processor runs the tasks of one tag.
//
// A nil error completes the task. Any other error spends the attempt: the task is tried again with backoff until its
// attempts are used up, unless the error is made by [Permanent], [Snooze] or [RetryAfter]. A panic counts as an error
// and its stack is kept.
//
// The context ends when the attempt's timeout passes, when the lease is lost, when the task is cancelled, and when the
// grace of a stop ends; context.Cause tells which. A task may run more than once: make the work idempotent, or complete
// it with CompleteTx.
type Processor interface {
	Process(ctx context.Context, task *Task) error
}

// Func lets a plain function be a [Processor].
type Func func(ctx context.Context, task *Task) error

// Process calls f.
func (f Func) Process(ctx context.Context, task *Task) error { return f(ctx, task) }
