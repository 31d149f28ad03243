package client

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

var (
	token     = delaytask.Token{ID: 5, Version: 3}
	leaseLost = refuses(http.StatusConflict, wire.CodeLeaseLost)
	done      = says(http.StatusNoContent, nil)
)

func task(status delaytask.Status, version int64) http.HandlerFunc {
	return says(http.StatusOK, wire.Task{ID: 5, Status: status, Version: version})
}

func TestAFinishWhoseAnswerWasLostIsLookedUp(t *testing.T) {
	t.Parallel()
	f := func(want, not error, answers ...http.HandlerFunc) {
		t.Helper()
		retryFor := 20 * time.Second
		if len(answers) == 1 {
			retryFor = 200 * time.Millisecond // the one answer is all that comes
		}
		c, _ := scripted(t, []Option{WithRetryFor(retryFor)}, answers...)
		if err := c.Finish(t.Context(), token); !errors.Is(err, want) || not != nil && errors.Is(err, not) {
			t.Errorf("Finish: %v, want %v and not %v", err, want, not)
		}
	}
	f(nil, nil, done)
	f(nil, nil, lost, done)
	f(nil, nil, lost, leaseLost, task("completed", 4))
	f(delaytask.ErrLeaseLost, nil, leaseLost, task("completed", 4)) // by another process
	f(delaytask.ErrLeaseLost, nil, lost, leaseLost, task("completed", 6))
	f(delaytask.ErrLeaseLost, nil, lost, leaseLost, task("pending", 4))
	f(delaytask.ErrLeaseLost, nil, refuses(503, wire.CodeOverloaded), leaseLost, task("completed", 4))
	f(ErrNoAnswer, delaytask.ErrLeaseLost, lost, leaseLost, refuses(403, wire.CodeForbidden))
	f(ErrNoAnswer, delaytask.ErrLeaseLost, lost)
}

func TestABatchOfFinishesIsLookedUpOneByOne(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, nil, lost, says(http.StatusOK, wire.FinishBatchReply{Results: []wire.FinishResult{
		{}, {Code: wire.CodeLeaseLost}, {Code: wire.CodeLeaseLost},
	}}), task("completed", 4), task("executing", 4))
	answers, err := c.FinishAll(t.Context(), []delaytask.Token{token, {}, token, token})
	if err != nil || len(answers) != 4 {
		t.Fatalf("got %v, %v", answers, err)
	}
	if answers[0] != nil || !errors.Is(answers[1], delaytask.ErrInvalidToken) || answers[2] != nil ||
		!errors.Is(answers[3], delaytask.ErrLeaseLost) {
		t.Errorf("got %v", answers)
	}
}

func TestOtherEndsSayThatTheFirstTryMayHaveCounted(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Client) error{
		"Fail":    func(c *Client) error { return c.Fail(t.Context(), token, io.EOF) },
		"Snooze":  func(c *Client) error { return c.Fail(t.Context(), token, processor.Snooze(time.Minute)) },
		"Release": func(c *Client) error { return c.Release(t.Context(), token) },
	} {
		c, _ := scripted(t, nil, lost, leaseLost)
		if err := end(c); !errors.Is(err, delaytask.ErrLeaseLost) || !errors.Is(err, ErrNoAnswer) {
			t.Errorf("%s after a lost answer: %v", name, err)
		}
		c, _ = scripted(t, nil, leaseLost)
		if err := end(c); !errors.Is(err, delaytask.ErrLeaseLost) || errors.Is(err, ErrNoAnswer) {
			t.Errorf("%s: %v", name, err)
		}
		c, _ = scripted(t, nil, lost, done)
		if err := end(c); err != nil {
			t.Errorf("%s that was repeated: %v", name, err)
		}
	}
}

func TestAFailureSaysHow(t *testing.T) {
	t.Parallel()
	f := func(failure error, path string, want map[string]any) {
		t.Helper()
		c, s := scripted(t, nil, done)
		mustOK(t, c.Fail(t.Context(), token, failure))
		got := s.requests()[0]
		for name, value := range want {
			if got.body[name] != value || got.path != "/v1/tasks/5/"+path || got.body["token"] != "5.3" {
				t.Errorf("%v: sent %v to %s, want %s %v", failure, got.body, got.path, name, value)
			}
		}
	}
	f(io.EOF, "fail", map[string]any{"error": "EOF", "permanent": nil, "retry_after": nil})
	f(processor.Permanent(io.EOF), "fail", map[string]any{"error": "EOF", "permanent": true})
	f(processor.RetryAfter(io.EOF, time.Minute), "fail", map[string]any{"error": "EOF (again after 1m0s)",
		"retry_after": "1m"})
	f(processor.Snooze(time.Minute), "release", map[string]any{"delay": "1m", "error": nil})
	f(errors.New(""), "fail", map[string]any{"error": "an error without a text (*errors.errorString)"})
	f(&processor.PanicError{Value: 1, Stack: []byte("main.go:7")}, "fail",
		map[string]any{"error": "panic: 1\n\nmain.go:7"})
}
