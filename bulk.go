package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/engine"
)

// Bulk says which tasks CancelAll and RetryAll change, and how.
type Bulk struct {
	Filter   Filter         // its Status may be left out; Limit is the size of a batch, default 500
	DryRun   bool           // count only
	Progress func(done int) // called after every batch with the number so far; may be nil
}

// CancelAll cancels the pending tasks that match, batch by batch, and returns how many it cancelled, also beside an error. Tasks
// that are executing, or that change meanwhile, are left alone. It returns [ErrInvalidOption] when the filter asks for another
// status.
func (s *Scheduler) CancelAll(ctx context.Context, b Bulk) (int, error) {
	return s.changeAll(ctx, b, "cancel", s.engine.CancelWhere)
}

// RetryAll retries the failed tasks that match, batch by batch, and returns how many it retried, also beside an error. A task
// whose key another one carries by now stays failed. It returns [ErrInvalidOption] when the filter asks for another status.
func (s *Scheduler) RetryAll(ctx context.Context, b Bulk) (int, error) {
	return s.changeAll(ctx, b, "retry", s.engine.RetryWhere)
}

func (s *Scheduler) changeAll(
	ctx context.Context, b Bulk, op string, change func(context.Context, engine.Bulk) (int, error),
) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	filter, err := filterOf(&b.Filter, 0)
	if err != nil {
		return 0, err
	}
	n, err := change(ctx, engine.Bulk{Filter: filter, DryRun: b.DryRun, Progress: b.Progress})
	if err != nil {
		return n, fmt.Errorf("%s tasks: %w", op, err)
	}
	return n, nil
}
