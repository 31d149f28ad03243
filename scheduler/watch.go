package scheduler

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/events"
)

// Wait returns the task with this id once it is completed, failed or cancelled, whichever process ends it. A task that
// has ended already is returned at once. What this process ends is answered at once. What others end is found within
// half a second: one reader asks for up to 1,000 tasks in a statement, twice a second, and for more in turn. While the
// database is away, Wait goes on waiting. A row that cannot be read is returned at once, with Broken.
//
// It returns [delaytask.ErrNotFound] when there is no such task, when it is deleted meanwhile, or when the transaction
// that saves it is not committed. It returns the context's cause when ctx ends first, and [delaytask.ErrClosed] when
// the scheduler stops. How the task ended is in its status, and is no error.
func (s *Scheduler) Wait(ctx context.Context, id int64) (delaytask.TaskRow, error) {
	return s.core.Wait(ctx, id)
}

// Subscription receives the events of a scheduler. It is safe for concurrent use.
type Subscription struct{ of *events.Subscription }

// Subscribe returns a subscription to the events of this process: what it saves, runs, rescues and cancels. Events
// carry no bodies, and are sent after the row is stored. A save inside a caller's transaction sends none, for nothing
// is stored before the commit. An event is sent once at most: for what must not be missed, save a task.
//
// An event that finds the buffer full is dropped and counted, so a slow subscriber holds up nothing. It returns
// [delaytask.ErrInvalidTag], [delaytask.ErrInvalidOption], or [delaytask.ErrClosed] after Stop.
func (s *Scheduler) Subscribe(config delaytask.SubscribeConfig) (*Subscription, error) {
	of, err := s.core.Subscribe(config)
	if err != nil {
		return nil, err
	}
	return &Subscription{of}, nil
}

// Events returns the channel of the events. It is closed by Close, and when the scheduler has stopped.
func (s *Subscription) Events() <-chan delaytask.Event { return s.of.Events() }

// Dropped returns how many events found the buffer full.
func (s *Subscription) Dropped() uint64 { return s.of.Dropped() }

// Close ends the subscription. Events in the buffer can still be received.
func (s *Subscription) Close() { s.of.Close() }
