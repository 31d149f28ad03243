package processor

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
)

// Permanent marks an error that trying again cannot help. The task fails at once, however many attempts are left.
// Permanent(nil) is nil, so that `return Permanent(work())` completes the task when the work succeeded.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// Snooze puts the task back for d without spending an attempt. A negative d means at once.
func Snooze(d time.Duration) error { return &SnoozeError{After: max(d, 0)} }

// RetryAfter spends the attempt and asks for the next one after d instead of the tag's backoff, for instance when a
// remote system named the time. A negative d means at once. RetryAfter(nil, d) is nil: without an error the task is
// completed.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Err: err, After: max(d, 0)}
}

// HandOver says that the task was passed on to a party that accepted it and will end it later by its lease token,
// Task.ID and Task.Version. The processor's slot is free at once. The lease lasts ttr from now, at least 1 s and at
// most 24 h, or the task's own TTR when ttr is 0 or negative. It is not renewed. When it ends without an answer, the
// attempt is spent and the task is handed out again without backoff, as after a Pop.
//
// The token is valid from the beginning. An answer that comes before the processor has returned counts, and HandOver
// has no effect then.
func HandOver(ttr time.Duration) error {
	return &HandOverError{TTR: min(max(ttr, 0), delaytask.MaxTTR)}
}

// PermanentError is what [Permanent] makes. It may be wrapped.
type PermanentError struct{ Err error }

// Error goes through fmt, here and below, because a typed nil inside must not panic.
func (e *PermanentError) Error() string { return fmt.Sprint(e.Err) }

func (e *PermanentError) Unwrap() error { return e.Err }

// SnoozeError is what [Snooze] makes. It may be wrapped.
type SnoozeError struct{ After time.Duration }

func (e *SnoozeError) Error() string { return fmt.Sprintf("snoozed for %v", e.After) }

// RetryAfterError is what [RetryAfter] makes. It may be wrapped.
type RetryAfterError struct {
	Err   error
	After time.Duration
}

func (e *RetryAfterError) Error() string { return fmt.Sprintf("%v (again after %v)", e.Err, e.After) }

func (e *RetryAfterError) Unwrap() error { return e.Err }

// HandOverError is what [HandOver] makes. It may be wrapped.
type HandOverError struct{ TTR time.Duration }

func (e *HandOverError) Error() string {
	if e.TTR == 0 {
		return "handed over"
	}
	return fmt.Sprintf("handed over for %v", e.TTR)
}
