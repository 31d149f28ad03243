package processor

import (
	"fmt"
	"time"
)

// Permanent says that trying again cannot help: the task fails at once, whatever attempts are left. Permanent(nil) is nil, so
// that `return processor.Permanent(work())` completes the task when the work succeeded.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// Snooze puts the task back for d without spending an attempt: there was nothing to do yet. A negative d means at once.
func Snooze(d time.Duration) error { return &SnoozeError{After: max(d, 0)} }

// RetryAfter spends the attempt and asks for the next one after d instead of the tag's backoff, as when a remote system said how
// long to stay away. A negative d means at once. RetryAfter(nil, d) is nil: without an error the task is completed.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryAfterError{Err: err, After: max(d, 0)}
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
