package processor

import (
	"context"
	"time"
)

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

// Popped is a task that was claimed by hand. Its holder ends it with exactly one of Finish, Fail and Release, before
// its lease ends or after a Touch; otherwise the attempt is spent and the task is handed out again. Its [Token] does
// the same from any process.
type Popped struct {
	Task
	leases Leases
}

// NewPopped is a task that was handed out by the one that can end its lease.
func NewPopped(task Task, by Leases) *Popped { return &Popped{Task: task, leases: by} }

// Token returns the token of the task's lease, which ends the task from any process.
func (p *Popped) Token() Token { return Token{ID: p.ID, Version: p.Version} }

// Finish completes the task.
func (p *Popped) Finish(ctx context.Context) error { return p.leases.Finish(ctx, p.Token()) }

// Fail spends the attempt: [Permanent], [Snooze] and [RetryAfter] mean the same here as from a processor.
func (p *Popped) Fail(ctx context.Context, failure error) error {
	return p.leases.Fail(ctx, p.Token(), failure)
}

// Release gives the task back without spending the attempt.
func (p *Popped) Release(ctx context.Context) error { return p.leases.Release(ctx, p.Token()) }

// Touch makes the lease end after ttr from now: at least 1 s and at most 24 h, whatever is asked for.
func (p *Popped) Touch(ctx context.Context, ttr time.Duration) error {
	return p.leases.Touch(ctx, p.Token(), ttr)
}
