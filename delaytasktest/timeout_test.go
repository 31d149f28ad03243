package delaytasktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestAttemptsTimeOutOnTheTestsClock(t *testing.T) {
	t.Parallel()
	s := start(t)
	register(t, s, "slow", func(ctx context.Context, task *delaytask.Task) error {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		s.Outage(59 * time.Second)
		if err := ctx.Err(); err != nil {
			t.Errorf("ended a second early: %v", err)
		}
		if left := time.Until(deadline(t, ctx)); left <= 0 || left > time.Minute {
			t.Errorf("%v left by the machine's clock, want up to a minute", left)
		}
		if task.Attempt == 2 {
			return nil
		}
		s.Outage(time.Second)
		<-child.Done()
		for _, ended := range []context.Context{ctx, child} {
			if !errors.Is(ended.Err(), context.DeadlineExceeded) ||
				!errors.Is(context.Cause(ended), delaytask.ErrTimeout) {
				t.Errorf("ended with %v by %v", ended.Err(), context.Cause(ended))
			}
		}
		return child.Err()
	}, processor.Timeout(time.Minute))
	register(t, s, "next", nothing)
	save(t, s, "slow", 0)
	save(t, s, "next", 30*time.Second)
	var got []string
	for _, run := range append(s.Advance(0), s.Advance(time.Second)...) {
		got = append(got, fmt.Sprintln(run.Tag, run.Attempt, run.At.Sub(noon), run.Status))
	}
	want := []string{"slow 1 0s pending\n", "next 1 1m0s completed\n", "slow 2 1m1s completed\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if task := s.RequireSaved(t, "slow"); task.Errors[0].Error != delaytask.ErrTimeout.Error() {
		t.Errorf("the first attempt has failed with %q", task.Errors[0].Error)
	}
}

func deadline(t *testing.T, ctx context.Context) time.Time {
	t.Helper()
	at, bounded := ctx.Deadline()
	if !bounded {
		t.Error("an attempt has no deadline")
	}
	return at
}

func TestAttemptWithoutATimeoutGoesOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	register(t, s, "t", func(ctx context.Context, _ *delaytask.Task) error {
		s.Outage(24 * time.Hour)
		return ctx.Err()
	}, processor.Timeout(-1))
	save(t, s, "t", 0)
	if runs := s.Advance(0); len(runs) != 1 || runs[0].Err != nil {
		t.Errorf("got %v", runs)
	}
}
