package processor

import (
	"fmt"
	"time"
)

// RegisterOption is a setting of one tag. Where an option is given twice, the last one counts; [Use] adds up.
type RegisterOption func(*Registration) error

// Concurrency bounds how many tasks of the tag run at once in this process. 0, the default, means as many as the
// process runs. Where the process serves several tags it also keeps some slots free of each, whatever n. It returns
// [ErrInvalidOption] when n is negative.
func Concurrency(n int) RegisterOption {
	return func(r *Registration) error {
		if n < 0 {
			return fmt.Errorf("%w: concurrency %d: must not be negative", ErrInvalidOption, n)
		}
		r.Concurrency = n
		return nil
	}
}

// Timeout bounds one attempt: its context ends after d. 0 means no bound. Without this option the scheduler's timeout
// counts (default 5 min). It returns [ErrInvalidOption] when d is negative.
func Timeout(d time.Duration) RegisterOption {
	return func(r *Registration) error {
		if d < 0 {
			return fmt.Errorf("%w: timeout %v: must not be negative", ErrInvalidOption, d)
		}
		r.Timeout, r.NoTimeout = d, d == 0
		return nil
	}
}

// TTR is the lease of the tag's tasks that were saved without one of their own: so long after a process has died,
// somebody else takes its task. 0 means the scheduler's (default 15 s); less than 1 s is raised to 1 s. It returns
// [ErrInvalidTTR].
func TTR(d time.Duration) RegisterOption {
	return func(r *Registration) error {
		ttr, err := checkTTR(d)
		r.TTR = ttr
		return err
	}
}

// MaxAttempts is the number of attempts of the tag's tasks that were saved without one of their own. 0 means the
// scheduler's (default 20). It returns [ErrInvalidMaxAttempts].
func MaxAttempts(n int) RegisterOption {
	return func(r *Registration) error {
		r.MaxAttempts = n
		return checkMaxAttempts(n)
	}
}

// RetryBackoff replaces the scheduler's backoff between the attempts of the tag's tasks. It returns [ErrInvalidOption]
// when b is nil.
func RetryBackoff(b Backoff) RegisterOption {
	return func(r *Registration) error {
		if b == nil {
			return fmt.Errorf("%w: the backoff is nil", ErrInvalidOption)
		}
		r.Backoff = b
		return nil
	}
}

// Use puts middleware around the processor, the first one outermost. It returns [ErrInvalidOption] when one of them is
// nil.
func Use(mw ...Middleware) RegisterOption {
	return func(r *Registration) error {
		for _, m := range mw {
			if m == nil {
				return fmt.Errorf("%w: a middleware is nil", ErrInvalidOption)
			}
		}
		r.middleware = append(r.middleware, mw...)
		return nil
	}
}
