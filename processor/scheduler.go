package processor

import (
	"context"
	"time"
)

// Scheduler is what both forms of delaytask offer: *delaytask.Scheduler, which works on the program's own database, and
// *client.Client, which calls the service. A program that keeps to it moves from one to the other by changing one
// constructor.
//
// Only the embedded form can save, change and complete tasks inside a transaction of the caller's database.
type Scheduler interface {
	Register(tag string, p Processor, opts ...RegisterOption) error
	Unregister(tag string) bool
	Start(ctx context.Context) error
	Stop(ctx context.Context) error

	SaveDelayTask(ctx context.Context, tag string, body any, delay time.Duration, opts ...Option) (int64, error)
	SaveDelayTasks(ctx context.Context, items []Item) ([]SaveResult, error)

	Pop(ctx context.Context, tag string, opts ...PopOption) ([]*Popped, error)
	Leases
	FinishAll(ctx context.Context, tokens []Token) ([]error, error)

	Get(ctx context.Context, ref Ref) (TaskRow, error)
	List(ctx context.Context, f Filter) (Page, error)
	Cancel(ctx context.Context, ref Ref, opts ...ChangeOption) (Status, error)
	Reschedule(ctx context.Context, ref Ref, delay time.Duration, opts ...ChangeOption) (Status, error)
	SetBody(ctx context.Context, ref Ref, body any) (Status, error)
	Retry(ctx context.Context, ref Ref) error
	Explain(ctx context.Context, ref Ref) (Explanation, error)

	Pause(ctx context.Context, tag string) error
	Resume(ctx context.Context, tag string) error
	Tags(ctx context.Context) ([]TagState, error)
	Nodes(ctx context.Context) ([]Node, error)
	Stats(ctx context.Context) ([]TagStats, error)
}
