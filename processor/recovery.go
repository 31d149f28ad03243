package processor

import (
	"context"
	"fmt"
	"runtime/debug"
)

// PanicError is the error of an attempt that panicked.
type PanicError struct {
	Value any
	Stack []byte // as runtime/debug.Stack writes it
}

// Error leaves the stack out: it goes to logs and messages, while Stack is stored with the task.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recovery turns a panic into a [PanicError]. The scheduler does so anyway; here it lets middleware further out see the
// error.
func Recovery() Middleware {
	return func(next Processor) Processor {
		return Func(func(ctx context.Context, task *Task) (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &PanicError{Value: v, Stack: debug.Stack()}
				}
			}()
			return next.Process(ctx, task)
		})
	}
}
