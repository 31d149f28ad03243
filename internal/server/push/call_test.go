package push

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/webhooktest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

func someTask() *delaytask.Task {
	return &delaytask.Task{ID: 42, Tag: "t", Attempt: 1, Version: 7, Body: []byte("{}")}
}

func at(addresses ...string) (all []*target) {
	for _, a := range addresses {
		all = append(all, &target{Receiver: row.Receiver{Address: a}})
	}
	return all
}

// later is a receiver that answers with a Retry-After.
func later(t *testing.T, status int, seconds string) string {
	t.Helper()
	return servertest.Listen(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(status)
	})
}

func TestWhatTheAnswersMean(t *testing.T) {
	t.Parallel()
	r := &Registry{Config: Config{Client: newClient(t, slog.New(slog.DiscardHandler))}}
	f := func(name string, want func(error) bool, receivers []*target, calledAfter bool) {
		t.Helper()
		called := make(chan *http.Request, 9)
		receivers = append(receivers, at(answer(t, 500, called))...)
		if err := r.call(t.Context(), someTask(), receivers); !want(err) {
			t.Errorf("%s: got %v", name, err)
		}
		if (len(called) == 1) != calledAfter {
			t.Errorf("%s: the next one was called %d times, want it called: %t", name, len(called), calledAfter)
		}
	}
	status := func(want int) func(error) bool {
		return func(err error) bool {
			refusal, ok := errors.AsType[*webhook.StatusError](err)
			_, permanent := errors.AsType[*processor.PermanentError](err)
			return ok && refusal.Status == want && permanent == (want == 410)
		}
	}
	retryIn := func(want time.Duration) func(error) bool {
		return func(err error) bool {
			retry, ok := errors.AsType[*processor.RetryAfterError](err)
			return ok && retry.After == want
		}
	}
	accepted := func(err error) bool {
		handed, ok := errors.AsType[*processor.HandOverError](err)
		return ok && handed.TTR == 0
	}
	done := func(err error) bool { return err == nil }

	f("200", done, at(answer(t, 200, nil)), false)
	f("202", accepted, at(answer(t, 202, nil)), false)
	f("400", status(400), at(answer(t, 400, nil)), false)
	f("302", status(302), at(answer(t, 302, nil)), false)
	f("410, which is permanent", status(410), at(answer(t, 410, nil)), false)
	f("429", retryIn(7*time.Second), at(later(t, 429, "7")), false)
	f("503, later", retryIn(9*time.Second), at(later(t, 503, "9")), true)
	f("503, the first to say when counts", retryIn(9*time.Second), at(later(t, 503, "9"), later(t, 503, "70")), true)
	f("503", status(500), at(answer(t, 503, nil)), true)
	f("refused", status(500), at(dead(t)), true)
	f("blocked", status(500), at("http://10.0.0.1/"), true)
	f("no URL", status(500), at("somewhere"), true)
	f("dead, then 200", done, at(dead(t), answer(t, 200, nil)), false)
}

func TestTurnedAwayIsNoAttempt(t *testing.T) {
	t.Parallel()
	r := &Registry{Config: Config{Client: webhooktest.New(t, webhook.Config{HostConcurrency: 1})}}
	began, end := make(chan struct{}, 2), make(chan struct{})
	busy := func() string {
		return servertest.Listen(t, func(http.ResponseWriter, *http.Request) {
			began <- struct{}{}
			<-end
		})
	}
	receivers := at(busy(), busy())
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	done := make(chan error, 2)
	for range receivers { // the first receiver refuses the second task, and the other takes it
		go func() { done <- r.call(t.Context(), someTask(), receivers) }()
		servertest.Receive(t, began, "the call")
	}
	if err := r.call(t.Context(), someTask(), receivers); !isSnooze(err) || !errors.Is(err, webhook.ErrHostBusy) {
		t.Errorf("with both busy: got %v", err)
	}
	if err := r.call(t.Context(), someTask(), append(receivers, at(dead(t))...)); err == nil || isSnooze(err) {
		t.Errorf("with both busy and one that was called in vain: got %v", err)
	}
	release()
	for range receivers {
		if err := servertest.Receive(t, done, "the end of a call"); err != nil {
			t.Errorf("what was not turned away: %v", err)
		}
	}
}

func TestEndOfTheAttemptEndsTheSearch(t *testing.T) {
	t.Parallel()
	r := &Registry{Config: Config{Client: newClient(t, slog.New(slog.DiscardHandler))}}
	ctx, cancel := context.WithCancel(t.Context())
	slow := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that a server does not notice that its client has gone
		cancel()
		<-r.Context().Done()
	})
	called := make(chan *http.Request, 1)
	next := strings.Replace(answer(t, 200, called), "127.0.0.1", "localhost", 1)
	err := r.call(ctx, someTask(), at(slow, next))
	if !errors.Is(err, context.Canceled) || len(called) > 0 {
		t.Errorf("got %v after %d more calls", err, len(called))
	}
	failed, ok := errors.AsType[*webhook.CallError](err)
	if !ok || failed.Host != "127.0.0.1" || !strings.Contains(err.Error(), "given up") {
		t.Errorf("%v blames one that was not called, or the one that was", err)
	}
}

func TestSoonerSnoozeCounts(t *testing.T) {
	t.Parallel()
	short, long := processor.Snooze(time.Second), processor.Snooze(time.Minute)
	if !errors.Is(sooner(nil, long), long) || !errors.Is(sooner(long, short), short) ||
		!errors.Is(sooner(short, long), short) {
		t.Error("the longer one counts")
	}
}
