package delaytask

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestWhatAProcessorReturnsIsCleaned(t *testing.T) {
	t.Parallel()
	failed := make(chan struct{}, 3)
	f := open(t, func(c *Config) {
		c.MaxAttempts = 1
		c.OnFailed = func(context.Context, *processor.Task, error) { failed <- struct{}{} }
	})
	var typedNil *customError
	results := map[string]error{
		"long":    errors.New(strings.Repeat("long ", 2<<20)),
		"garbage": errors.New("\xff\xfe not text"),
		"nil":     typedNil,
	}
	for name, err := range results {
		f.serve(t, name, func(context.Context, *processor.Task) error { return err })
	}
	for name := range results {
		if _, err := f.SaveDelayTask(t.Context(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range results {
		<-failed
	}
	page, err := f.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range page.Tasks {
		valid := strings.ToValidUTF8(task.ErrorStack, "") == task.ErrorStack
		if task.Status != Failed || len(task.ErrorStack) == 0 || len(task.ErrorStack) > 8<<10 || !valid || len(task.Errors) != 1 {
			t.Errorf("%s: %s with %d bytes of error, valid %v, %d attempts",
				task.Tag, task.Status, len(task.ErrorStack), valid, len(task.Errors))
		}
	}
}

// customError is an error that many programs have: a nil pointer to it is not a nil error, and its method panics on that.
type customError struct{ reason string }

func (e *customError) Error() string { return e.reason }

func TestEmptyBodyIsDeliveredEmpty(t *testing.T) {
	t.Parallel()
	f := open(t)
	bodies := make(chan []byte, 1)
	f.serve(t, "t", func(_ context.Context, task *processor.Task) error {
		bodies <- task.Body
		return nil
	})
	if _, err := f.SaveDelayTask(t.Context(), "t", nil, 0); err != nil {
		t.Fatal(err)
	}
	if body := <-bodies; len(body) != 0 {
		t.Errorf("got %q", body)
	}
}

func TestTagWithoutAProcessorIsNeverClaimedHere(t *testing.T) {
	t.Parallel()
	f := open(t)
	done := make(chan struct{})
	f.serve(t, "served", func(context.Context, *processor.Task) error {
		close(done)
		return nil
	})
	orphan, err := f.SaveDelayTask(t.Context(), "orphan", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.SaveDelayTask(t.Context(), "served", nil, 0); err != nil {
		t.Fatal(err)
	}
	<-done
	if task := f.get(t, orphan); task.Status != Pending || task.Attempt != 0 {
		t.Errorf("the orphan is %s after attempt %d", task.Status, task.Attempt)
	}
	if why, err := f.Explain(t.Context(), ID(orphan)); err != nil || why.Reason != ReasonUnserved {
		t.Errorf("explained as %+v, %v", why, err)
	}
}

func TestCancelMeetsATaskAnywhere(t *testing.T) {
	t.Parallel()
	f := open(t)
	running, ended := make(chan int64), make(chan error)
	f.serve(t, "slow", func(ctx context.Context, task *processor.Task) error {
		running <- task.ID
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
	pending, err := f.SaveDelayTask(t.Context(), "slow", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if met, err := f.Cancel(t.Context(), ID(pending)); met != Pending || err != nil {
		t.Errorf("pending: %v, %v", met, err)
	}
	version := f.get(t, pending).Version
	if _, err := f.Cancel(t.Context(), ID(pending)); !errors.Is(err, ErrFinished) {
		t.Errorf("a second time: %v, want %v", err, ErrFinished)
	}
	if now := f.get(t, pending); now.Status != Cancelled || now.Version != version {
		t.Errorf("a second cancel changed %+v", now)
	}

	if _, err := f.SaveDelayTask(t.Context(), "slow", nil, 0); err != nil {
		t.Fatal(err)
	}
	id := <-running
	if _, err := f.Cancel(t.Context(), ID(id), OnlyPending()); !errors.Is(err, ErrNotPending) {
		t.Errorf("executing, only if pending: %v, want %v", err, ErrNotPending)
	}
	if _, err := f.Reschedule(t.Context(), ID(id), time.Hour); !errors.Is(err, ErrNotPending) {
		t.Errorf("reschedule while executing: %v, want %v", err, ErrNotPending)
	}
	if _, err := f.SetBody(t.Context(), ID(id), "new"); !errors.Is(err, ErrNotPending) {
		t.Errorf("a new body while executing: %v, want %v", err, ErrNotPending)
	}
	if met, err := f.Cancel(t.Context(), ID(id)); met != Executing || err != nil {
		t.Errorf("executing: %v, %v", met, err)
	}
	if cause := <-ended; !errors.Is(cause, processor.ErrCancelled) {
		t.Errorf("the processor's context ended with %v", cause)
	}
	if task := f.get(t, id); task.Status != Cancelled {
		t.Errorf("the result of the cancelled attempt made it %s", task.Status)
	}
}
