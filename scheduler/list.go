package scheduler

import (
	"context"

	"github.com/delaytask/delaytask"
)

// List returns the tasks that match, page by page. A page ends at 16 MiB of bodies and errors, though it has at least
// one task. A task that is saved or changed meanwhile may be missing, or may come again where its due time has moved.
//
// It returns [delaytask.ErrInvalidTag], [delaytask.ErrInvalidCursor], and [delaytask.ErrInvalidOption] when another
// field is out of range.
func (s *Scheduler) List(ctx context.Context, f delaytask.Filter) (delaytask.Page, error) {
	return s.core.List(ctx, f)
}

// Get returns a task with its body. It returns [delaytask.ErrNotFound] when it does not exist, or was deleted after its
// retention.
func (s *Scheduler) Get(ctx context.Context, ref delaytask.Ref) (delaytask.TaskRow, error) {
	return s.core.Get(ctx, ref)
}
