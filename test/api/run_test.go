package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestTasksRun(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		type order struct{ Number int }
		ran := make(chan string, 10)
		closeOrder := processor.Typed(func(_ context.Context, task *delaytask.Task, o order) error {
			ran <- fmt.Sprintln(o.Number, task.Key, task.Attempt, task.Headers, time.Now().Before(task.Expected))
			if task.Attempt == 1 {
				return processor.RetryAfter(errors.New("not yet"), 0)
			}
			return nil
		})
		start(t, s, "order.close", closeOrder.Process)
		id, err := s.SaveDelayTask(t.Context(), "order.close", order{7}, 50*time.Millisecond, delaytask.WithKey("k"),
			delaytask.WithHeader("a", "b"))
		servertest.OK(t, err)
		for _, want := range []string{"7 k 1 map[a:b] false\n", "7 k 2 map[a:b] false\n"} {
			if got := wait(t, ran); got != want {
				t.Errorf("ran %s, want %s", got, want)
			}
		}
		task := settled(t, s, id)
		if task.Status != delaytask.Completed || task.Attempt != 2 || len(task.Errors) != 1 || task.LastError() == "" ||
			task.Started.Before(task.Expected) || string(task.Body) != `{"Number":7}` || task.Headers["a"] != "b" {
			t.Errorf("got %+v", task)
		}
	})
}

// In each form, and by a receiver that the service calls.
func TestEveryOutcomeOfAProcessor(t *testing.T) {
	both(t, func(t *testing.T, s form) { everyOutcome(t, s, s) })
	t.Run("receiver", func(t *testing.T) {
		t.Parallel()
		c := dial(t, serve(t))
		r := listen(t, c)
		everyOutcome(t, c, r)
	})
}

func everyOutcome(t *testing.T, s processor.Scheduler, w worker) {
	permanent := func(text string) error { return processor.Permanent(errors.New(text)) }
	for name, c := range map[string]struct {
		first   func(*delaytask.Task) error // of the first call; later ones succeed
		status  delaytask.Status
		attempt int
		text    string
		calls   int32
	}{
		"nil":    {func(*delaytask.Task) error { return nil }, delaytask.Completed, 1, "", 1},
		"error":  {func(*delaytask.Task) error { return errors.New("not yet") }, delaytask.Completed, 2, "not yet", 2},
		"snooze": {func(*delaytask.Task) error { return processor.Snooze(0) }, delaytask.Completed, 1, "", 2},
		"again": {func(*delaytask.Task) error { return processor.RetryAfter(errors.New("soon"), 0) },
			delaytask.Completed, 2, "soon (again after 0s)", 2},
		"permanent": {func(*delaytask.Task) error { return permanent("no use") }, delaytask.Failed, 1, "no use", 1},
		"empty":     {func(*delaytask.Task) error { return permanent("") }, delaytask.Failed, 1, "", 1},
		"panic":     {func(*delaytask.Task) error { panic(permanent("oh")) }, delaytask.Failed, 1, "panic: oh", 1},
		"later": {func(task *delaytask.Task) error {
			token := delaytask.Token{ID: task.ID, Version: task.Version}
			time.AfterFunc(0, func() { _ = s.Finish(context.Background(), token) })
			return processor.HandOver(time.Minute)
		}, delaytask.Completed, 1, "", 1},
	} {
		var calls atomic.Int32
		start(t, w, name, func(_ context.Context, task *delaytask.Task) error {
			if calls.Add(1) == 1 {
				return c.first(task)
			}
			return nil
		}, processor.RetryBackoff(processor.Constant(0)))
		task := settled(t, s, save(t, s, name, 0))
		if task.Status != c.status || task.Attempt != c.attempt || !strings.HasPrefix(task.LastError(), c.text) ||
			calls.Load() != c.calls {
			t.Errorf("%s: %d calls, and it is %+v", name, calls.Load(), task)
		}
	}
}

func TestATagIsUnregisteredAndTakenUpAgain(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ran := make(chan string, 1)
		say := func(text string) processor.Func {
			return func(context.Context, *delaytask.Task) error { ran <- text; return nil }
		}
		start(t, s, "a", say("first"))
		save(t, s, "a", 0)
		wait(t, ran)
		wantError(t, "a second processor", s.Register("a", say("second")), delaytask.ErrTagRegistered)
		if !s.Unregister("a") || s.Unregister("a") || s.Unregister("b") {
			t.Error("it does not tell whether the tag had a processor")
		}
		for i, opts := range [][]processor.RegisterOption{{processor.Concurrency(2)}, nil} {
			start(t, s, "a", say(fmt.Sprint(i)), opts...)
			save(t, s, "a", 0)
			if got := wait(t, ran); got != fmt.Sprint(i) {
				t.Errorf("%s ran", got)
			}
			s.Unregister("a")
		}
	})
}

func TestATimeoutOfZeroIsTheDefaultAndANegativeOneIsNone(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		bounded := make(chan bool, 1)
		f := func(tag string, want bool, opts ...processor.RegisterOption) {
			servertest.OK(t, s.Register(tag, processor.Func(func(ctx context.Context, _ *delaytask.Task) error {
				_, is := ctx.Deadline()
				bounded <- is
				return nil
			}), opts...))
			save(t, s, tag, 0)
			if got := wait(t, bounded); got != want {
				t.Errorf("%s: bounded %v, want %v", tag, got, want)
			}
		}
		servertest.OK(t, s.Start(t.Context()))
		f("default", true)
		f("zero", true, processor.Timeout(0))
		f("none", false, processor.Timeout(-1))
		stop(t, s)
	})
}
