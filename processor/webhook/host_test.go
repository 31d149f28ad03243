package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

var errDown = errors.New("down")

func hostsOf(cfg Config) *hosts {
	cfg.setDefaults()
	return newHosts(cfg)
}

func TestTaskOverTheConcurrencyIsSnoozed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(Config{HostConcurrency: 2})
		leave := mustEnter(t, h, "a:443")
		_ = mustEnter(t, h, "a:443")
		first, second := snoozed(t, h, "a:443"), snoozed(t, h, "a:443")
		if first <= 0 || second <= first {
			t.Errorf("snoozed for %v and %v, want moments of their own", first, second)
		}
		mustEnter(t, h, "b:443")(nil)
		leave(nil)
		mustEnter(t, h, "a:443")
	})
}

func TestTasksOverTheRateComeBackAtTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(Config{HostConcurrency: 100, HostRate: 10, HostBurst: 1})
		mustEnter(t, h, "a:443")(nil)
		var waits []time.Duration
		for range 5 {
			waits = append(waits, snoozed(t, h, "a:443"))
		}
		var slept time.Duration
		for i, wait := range waits {
			if want := time.Duration(i+1) * 100 * time.Millisecond; wait != want {
				t.Errorf("snooze %d is %v, want %v", i+1, wait, want)
			}
			time.Sleep(wait - slept)
			slept = wait
			mustEnter(t, h, "a:443")(nil)
		}
		// A crowd is spread over the last half minute instead of over hours.
		for range 10_000 {
			if wait := snoozed(t, h, "a:443"); wait > longestSnooze {
				t.Fatalf("snoozed for %v", wait)
			}
		}
	})
}

func TestHostThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := hostsOf(Config{HostConcurrency: 10, BreakerFailures: 3, BreakerWait: 10 * time.Second,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		fail := func() { mustEnter(t, h, "a:443")(errDown) }
		fail()
		fail()
		mustEnter(t, h, "a:443")(nil) // an answer resets the count
		fail()
		fail()
		mustEnter(t, h, "a:443")(errNotCalled)
		mustEnter(t, h, "b:443")(nil)
		if _, down := h.down("a:443"); down {
			t.Error("it is down before the last failure")
		}
		fail()
		if again, down := h.down("a:443"); !down || time.Until(again) < 10*time.Second {
			t.Errorf("down %v until %v", down, again)
		}
		if _, down := h.down("b:443"); down {
			t.Error("the other host is down")
		}

		wait := snoozed(t, h, "a:443")
		if wait < 10*time.Second || wait > 11*time.Second {
			t.Errorf("snoozed for %v, want about 10s", wait)
		}
		if again := snoozed(t, h, "a:443"); again <= wait {
			t.Errorf("the next one is snoozed for %v, as long as the first", again)
		}
		mustEnter(t, h, "b:443")(nil)

		time.Sleep(wait)
		probe := mustEnter(t, h, "a:443")
		if wait := snoozed(t, h, "a:443"); wait > time.Second {
			t.Errorf("while one call tries, another is snoozed for %v", wait)
		}
		probe(errDown)
		if wait := snoozed(t, h, "a:443"); wait < 10*time.Second {
			t.Errorf("after the try failed: snoozed for %v", wait)
		}
		time.Sleep(11 * time.Second)
		mustEnter(t, h, "a:443")(errNotCalled) // a try that was given up leaves room for another
		mustEnter(t, h, "a:443")(nil)
		mustEnter(t, h, "a:443")(nil)
		if _, down := h.down("a:443"); down {
			t.Error("it is down after an answer")
		}
		for _, want := range []string{"host does not answer", "host answers again"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("the log does not say once %q:\n%s", want, log.String())
			}
		}
	})
}

func TestHostsAreForgottenLeastRecentFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hostsOf(Config{HostConcurrency: 1, BreakerFailures: 1, BreakerWait: time.Hour, MaxHosts: 3,
			Log: slog.New(slog.DiscardHandler)})
		busy := mustEnter(t, h, "busy:1")
		mustEnter(t, h, "dead:1")(errDown)
		mustEnter(t, h, "old:1")(errDown)
		snoozed(t, h, "dead:1") // used again
		for i := range 2 {
			mustEnter(t, h, fmt.Sprintf("new%d:1", i))(nil)
			snoozed(t, h, "dead:1")
			snoozed(t, h, "busy:1")
		}
		mustEnter(t, h, "old:1")(nil) // forgotten, with its breaker
		if len(h.byKey) != 3 || h.recent.Len() != 3 {
			t.Errorf("%d and %d hosts are kept, want 3", len(h.byKey), h.recent.Len())
		}
		busy(nil)
	})
}

func mustEnter(t *testing.T, h *hosts, key string) func(error) {
	t.Helper()
	leave, err := h.enter(key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return leave
}

func snoozed(t *testing.T, h *hosts, key string) time.Duration {
	t.Helper()
	_, err := h.enter(key)
	snooze, ok := errors.AsType[*processor.SnoozeError](err)
	if !ok || errors.Is(err, ErrHostBusy) == errors.Is(err, ErrHostDown) {
		t.Fatalf("%s: got %v, want a snooze with its reason", key, err)
	}
	return snooze.After
}

func TestVerdictBlamesTheHostForSilenceAlone(t *testing.T) {
	t.Parallel()
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	f := func(ctx context.Context, err, want error) {
		t.Helper()
		if got := hostResult(ctx, err); !errors.Is(got, want) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	silent := &CallError{Host: "h", Err: io.EOF}
	blocked := &CallError{Host: "h", Err: fmt.Errorf("dial: %w", ErrBlockedURL)}
	f(t.Context(), nil, nil)
	f(t.Context(), silent, silent)
	f(t.Context(), blocked, errNotCalled)
	f(t.Context(), &MismatchError{}, nil)
	f(ended(delaytask.ErrLeaseLost), silent, errNotCalled)
	f(ended(delaytask.ErrCancelled), silent, errNotCalled)
	f(ended(delaytask.ErrTimeout), silent, silent)
	f(ended(delaytask.ErrLeaseLost), &StatusError{Status: 200}, nil)
	for status, down := range map[int]bool{301: false, 404: false, 429: false, 500: false, 502: true, 503: true,
		504: true} {
		refusal := processor.RetryAfter(&StatusError{Status: status}, time.Second)
		if down {
			f(t.Context(), refusal, refusal)
		} else {
			f(t.Context(), refusal, nil)
		}
	}
}
