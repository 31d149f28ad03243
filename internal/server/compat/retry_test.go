package compat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestFailedJobRunsAgainWhenItsTTRHasPassed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		headers map[string]string
		process processor.Func
		want    time.Duration // -1: the error is left as it was
	}{
		"its own TTR": {map[string]string{ttrHeader: "5000"}, fails(300*time.Millisecond, broken),
			4700 * time.Millisecond},
		"the usual one": {map[string]string{ttrHeader: "0"}, fails(0, broken), 15 * time.Second},
		"a small one":   {map[string]string{ttrHeader: "10"}, fails(0, broken), time.Second},
		"an attempt that took longer": {
			map[string]string{ttrHeader: "5000"}, fails(time.Minute, broken), 0},
		"a panic": {
			map[string]string{ttrHeader: "5000"}, func(context.Context, *delaytask.Task) error { panic("oh") },
			5 * time.Second},
		"a task of another kind": {map[string]string{"x": "5000"}, fails(0, broken), -1},
		"no headers":             {nil, fails(0, broken), -1},
		"a success":              {map[string]string{ttrHeader: "5000"}, fails(0, nil), -1},
		"a permanent error":      {map[string]string{ttrHeader: "5000"}, fails(0, processor.Permanent(broken)), -1},
		"a snooze":               {map[string]string{ttrHeader: "5000"}, fails(0, processor.Snooze(time.Minute)), -1},
		"another wait": {
			map[string]string{ttrHeader: "5000"}, fails(0, processor.RetryAfter(broken, time.Hour)), time.Hour},
		"a hand-over": {map[string]string{ttrHeader: "5000"}, fails(0, processor.HandOver(0)), -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrapped := RetryAfterTTR(15 * time.Second)(c.process)
				err := wrapped.Process(t.Context(), &delaytask.Task{Headers: c.headers})
				after := time.Duration(-1)
				if retry, ok := errors.AsType[*processor.RetryAfterError](err); ok {
					after = retry.After
				}
				if after != c.want {
					t.Errorf("again after %v (%v), want %v", after, err, c.want)
				}
			})
		})
	}
}

func TestAttemptThatTimesOutRunsAgainWhenItsTTRHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, delaytask.ErrTimeout)
		defer cancel()
		waits := processor.Func(func(ctx context.Context, _ *delaytask.Task) error {
			<-ctx.Done()
			return ctx.Err()
		})
		err := RetryAfterTTR(15*time.Second)(waits).Process(ctx,
			&delaytask.Task{Headers: map[string]string{ttrHeader: "5000"}})
		retry, ok := errors.AsType[*processor.RetryAfterError](err)
		if !ok || retry.After != 4*time.Second || !errors.Is(err, delaytask.ErrTimeout) ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %#v", err)
		}
	})
}

func fails(after time.Duration, err error) processor.Func {
	return func(ctx context.Context, _ *delaytask.Task) error {
		wait := time.NewTimer(after)
		defer wait.Stop()
		<-wait.C
		return err
	}
}
