package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/delaytask/delaytask"
)

// Middleware wraps a processor.
type Middleware func(Processor) Processor

// Chain makes one middleware of many. The first one is outermost.
func Chain(mw ...Middleware) Middleware {
	return func(p Processor) Processor {
		for i := len(mw) - 1; i >= 0; i-- {
			p = mw[i](p)
		}
		return p
	}
}

// Logging writes one line for each attempt: completed and snoozed ones at level info, others at warn. Bodies and
// headers are never written. A nil logger means slog.Default.
func Logging(log *slog.Logger) Middleware {
	if log == nil {
		log = slog.Default()
	}
	return func(next Processor) Processor {
		next = Recovery()(next) // a panic is logged too
		return Func(func(ctx context.Context, task *delaytask.Task) error {
			start := time.Now()
			err := next.Process(ctx, task)
			logAttempt(ctx, log, task, time.Since(start), err)
			return err
		})
	}
}

func logAttempt(ctx context.Context, log *slog.Logger, task *delaytask.Task, took time.Duration, err error) {
	log = log.With("task", task.ID, "tag", task.Tag, "version", task.Version, "attempt", task.Attempt, "took", took)
	switch snooze, ok := errors.AsType[*SnoozeError](err); {
	case err == nil:
		log.InfoContext(ctx, "task completed")
	case ok:
		log.InfoContext(ctx, "task snoozed", "after", snooze.After)
	default:
		log.WarnContext(ctx, "task attempt failed", "err", err)
	}
}

// TraceHook is called before each attempt. It returns the context that the processor gets and a function that is called
// with the attempt's error when it is over. A tracing library needs no other hook. task.Headers holds what
// [delaytask.WithHeaders] stored. Neither result may be nil.
type TraceHook func(ctx context.Context, task *delaytask.Task) (context.Context, func(err error))

// errGoexit is the error of an attempt whose processor does not return.
var errGoexit = errors.New("the processor ended its goroutine with runtime.Goexit")

// Tracing calls the hook around each attempt. A panic reaches the hook's function as a [PanicError], and a call of
// runtime.Goexit, which t.Fatal makes too, as an error.
func Tracing(hook TraceHook) Middleware {
	return func(next Processor) Processor {
		next = Recovery()(next)
		return Func(func(ctx context.Context, task *delaytask.Task) error {
			ctx, end := hook(ctx, task)
			err := errGoexit
			defer func() { end(err) }()
			err = next.Process(ctx, task)
			return err
		})
	}
}

// PanicError is the error of an attempt that panicked.
type PanicError struct {
	Value any
	Stack []byte // as runtime/debug.Stack writes it
}

// Error leaves the stack out. Stack is stored with the task.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recovery turns a panic into a [PanicError]. The scheduler does so anyway. Recovery lets outer middleware see the
// error.
func Recovery() Middleware {
	return func(next Processor) Processor {
		return Func(func(ctx context.Context, task *delaytask.Task) (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &PanicError{Value: v, Stack: debug.Stack()}
				}
			}()
			return next.Process(ctx, task)
		})
	}
}
