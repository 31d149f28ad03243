package delaytask

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PopOption is a setting of one Pop.
type PopOption func(*Pop) error

// Pop holds the options of a Pop.
type Pop struct {
	Tags  []string
	Max   int
	Wait  time.Duration
	Waits bool          // Wait is set; otherwise the wait has no end
	TTR   time.Duration // 0: each task's own
}

// mostPopped bounds what one Pop hands out.
const mostPopped = 1000

// PopMax hands out up to n tasks, 1 to 1,000; more is the same as 1,000. Default: 1. It returns [ErrInvalidOption]
// below 1.
func PopMax(n int) PopOption {
	return func(p *Pop) error {
		if n < 1 {
			return fmt.Errorf("%w: a pop of %d tasks", ErrInvalidOption, n)
		}
		p.Max = min(n, mostPopped)
		return nil
	}
}

// PopWait returns without a task after d: at once when d is 0. Without this option a Pop waits until its context ends.
// It returns [ErrInvalidOption] when d is negative.
func PopWait(d time.Duration) PopOption {
	return func(p *Pop) error {
		if d < 0 {
			return fmt.Errorf("%w: a wait of %v", ErrInvalidOption, d)
		}
		p.Wait, p.Waits = d, true
		return nil
	}
}

// PopTTR is how long the lease lasts, whatever the task's own TTR. It returns [ErrInvalidTTR].
func PopTTR(d time.Duration) PopOption {
	return func(p *Pop) (err error) {
		p.TTR, err = checkTTR(d)
		return err
	}
}

// PopAlso takes tasks of further tags as well, of up to 100 in all. It returns [ErrInvalidTag], and [ErrInvalidOption]
// for more.
func PopAlso(tags ...string) PopOption {
	return func(p *Pop) error {
		for _, tag := range tags {
			if !ValidTag(tag) {
				return fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
			}
		}
		p.Tags = append(p.Tags, tags...)
		return nil
	}
}

// Leases ends the leases of tasks that were handed out, by their tokens. All of its methods return [ErrLeaseLost] when
// the token does not hold the task any more, and [ErrInvalidToken].
type Leases interface {
	// Finish completes the task.
	Finish(ctx context.Context, t Token) error
	// Fail spends the attempt, as an error of a processor does. A nil failure is [ErrInvalidOption].
	Fail(ctx context.Context, t Token, failure error) error
	// Release gives the task back without spending the attempt.
	Release(ctx context.Context, t Token) error
	// Touch makes the lease end after ttr from now.
	Touch(ctx context.Context, t Token, ttr time.Duration) error
}

// Popped is a task that was claimed by a Pop. Its holder ends it with exactly one of Finish, Fail and Release, before
// its lease ends or after a Touch; otherwise the attempt is spent and the task is handed out again. Its [Token] does
// the same from any process.
type Popped struct {
	Task
	leases Leases
}

// NewPopped returns a popped task whose lease by ends.
func NewPopped(task Task, by Leases) *Popped { return &Popped{Task: task, leases: by} }

// Token returns the token of the task's lease, which ends the task from any process.
func (p *Popped) Token() Token { return Token{ID: p.ID, Version: p.Version} }

// Finish completes the task.
func (p *Popped) Finish(ctx context.Context) error { return p.leases.Finish(ctx, p.Token()) }

// Fail spends the attempt: processor.Permanent, processor.Snooze and processor.RetryAfter mean the same here as
// from a processor.
func (p *Popped) Fail(ctx context.Context, failure error) error {
	return p.leases.Fail(ctx, p.Token(), failure)
}

// Release gives the task back without spending the attempt.
func (p *Popped) Release(ctx context.Context) error { return p.leases.Release(ctx, p.Token()) }

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for.
func (p *Popped) Touch(ctx context.Context, ttr time.Duration) error {
	return p.leases.Touch(ctx, p.Token(), ttr)
}

// Token is the lease token: it ends the task that was handed out with it, from any process. Once the lease has passed
// on, every call with it returns [ErrLeaseLost] and changes nothing.
type Token struct{ ID, Version int64 }

// String returns "<id>.<version>", which [ParseToken] reads.
func (t Token) String() string { return fmt.Sprintf("%d.%d", t.ID, t.Version) }

// Check returns [ErrInvalidToken] for a token that cannot be one.
func (t Token) Check() error {
	if t.ID <= 0 || t.Version <= 0 {
		return fmt.Errorf("%w: got %v", ErrInvalidToken, t)
	}
	return nil
}

// ParseToken reads what [Token.String] has written, and nothing else. It returns [ErrInvalidToken].
func ParseToken(s string) (Token, error) {
	id, version, _ := strings.Cut(s, ".")
	t := Token{ID: positive(id), Version: positive(version)}
	if t.Check() != nil {
		return Token{}, fmt.Errorf("%w: got %.60q", ErrInvalidToken, s)
	}
	return t, nil
}

// positive returns the number, 0 unless it is positive and in canonical form.
func positive(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return 0
	}
	return n
}
