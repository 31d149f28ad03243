package api

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestMiddlewareOfAllTagsIsOutsideOfATagsOwn(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		var order []string // of one task at a time
		seen := func(name string) processor.Middleware {
			return func(next processor.Processor) processor.Processor {
				return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
					order = append(order, name)
					return next.Process(ctx, task)
				})
			}
		}
		ran := make(chan []string, 1)
		p := processor.Func(func(context.Context, *delaytask.Task) error {
			ran <- order
			order = nil
			return nil
		})
		servertest.OK(t, s.Register("before", p, processor.Use(seen("own"))))
		servertest.OK(t, s.Use(seen("first"), seen("second")))
		servertest.OK(t, s.Use(seen("third")))
		wantError(t, "nil middleware", s.Use(nil), delaytask.ErrInvalidOption)
		wantError(t, "middleware that returns nil",
			s.Use(func(processor.Processor) processor.Processor { return nil }), delaytask.ErrNilProcessor)
		servertest.OK(t, s.Start(t.Context()))
		wantError(t, "after Start", s.Use(seen("late")), delaytask.ErrStarted)
		if d, ok := s.Scheduler.(processor.ScheduleDeclarer); ok {
			err := processor.NewKind[string]("before").Every(d, "daily", delaytask.Every(time.Hour), "")
			wantError(t, "Every after Start", err, delaytask.ErrStarted)
			if says := err.Error(); !strings.Contains(says, "Every before Start; SaveSchedule stores") {
				t.Error(says)
			}
		}
		servertest.OK(t, s.Register("after", p, processor.Use(seen("own"))))
		for _, tag := range []string{"before", "after"} {
			_, err := s.SaveDelayTask(t.Context(), tag, "", 0)
			servertest.OK(t, err)
			if got := wait(t, ran); !slices.Equal(got, []string{"first", "second", "third", "own"}) {
				t.Errorf("a task of tag %s ran through %v", tag, got)
			}
		}
		servertest.OK(t, s.Stop(context.WithoutCancel(t.Context())))
		wantError(t, "after Stop", s.Use(seen("late")), delaytask.ErrClosed)
	})
}
