package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/processor"
)

// SetBody replaces the body of a pending task by what SaveDelayTask would store for the value; nil empties it. The promise, the
// time of the next attempt and the attempts so far stay as they are. It returns the status that it met, which is [Pending]. To
// move the task in the same step, use [Scheduler.Reschedule] with [Body].
//
// It returns [ErrInvalidBody], [ErrBodyTooLarge], [ErrNotFound], [ErrBroken], [ErrFinished], [ErrNotPending] for a task that is
// executing, or [ErrContended] when the task changed each time it was about to be changed.
//
// When another process runs the task and less than a second is left until it is due, the task may start up to half a second late:
// that process learns of the change by its next look at the table.
func (s *Scheduler) SetBody(ctx context.Context, ref Ref, body any) (Status, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	save, err := processor.NewSave("body", body, 0, processor.Limits{Body: s.bodyLimit})
	if err != nil {
		return "", err
	}
	met, err := s.engine.SetBody(ctx, name, save.Body)
	if err != nil {
		return "", fmt.Errorf("set the body of %v: %w", ref, err)
	}
	return Status(met.String()), nil
}
