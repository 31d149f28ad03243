package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestWaitReturnsTheEndedTask(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		good := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
		servertest.OK(t, s.Register("good", good))
		servertest.OK(t, s.Register("bad", processor.Func(func(context.Context, *delaytask.Task) error {
			return processor.Permanent(errors.New("no such order"))
		})))
		servertest.OK(t, s.Start(t.Context()))
		for tag, want := range map[string]delaytask.Status{"good": delaytask.Completed, "bad": delaytask.Failed} {
			id := save(t, s, tag, 300*time.Millisecond)
			for range 2 { // while it waits, and after its end
				task, err := s.Wait(t.Context(), id)
				servertest.OK(t, err)
				if task.ID != id || task.Status != want || string(task.Body) == "" {
					t.Errorf("tag %s: the task is %+v", tag, task)
				}
			}
		}
	})
}

func TestWaitEndsWithItsContextAndForATaskThatDoesNotExist(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		_, err := s.Wait(t.Context(), 42)
		wantError(t, "a task that does not exist", err, delaytask.ErrNotFound)
		_, err = s.Wait(t.Context(), -1)
		wantError(t, "an invalid id", err, delaytask.ErrInvalidID)
		id := save(t, s, "t", time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = s.Wait(ctx, id)
		wantError(t, "a wait that its context ends", err, context.DeadlineExceeded)
	})
}
