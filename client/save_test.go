package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestASaveIsRepeatedUnderItsID(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, nil, lost, refuses(http.StatusServiceUnavailable, wire.CodeUnavailable),
		says(http.StatusBadGateway, nil), confirms)
	id, err := c.SaveDelayTask(t.Context(), "a", 1, time.Minute)
	if err != nil || id != 7 {
		t.Fatalf("got %d, %v", id, err)
	}
	sent := s.requests()
	if len(sent) != 4 {
		t.Fatalf("%d requests, want 4", len(sent))
	}
	for _, r := range sent {
		if r.body["id"] == nil || r.body["id"] != sent[0].body["id"] || r.body["delay"] != "1m" {
			t.Errorf("sent %v after %v", r.body, sent[0].body)
		}
	}
}

func TestASaveWithoutAnAnswerTellsItsID(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"lost":            lost,
		"bad gateway":     says(http.StatusBadGateway, nil),
		"internal":        refuses(http.StatusInternalServerError, wire.CodeInternal),
		"outcome unknown": refuses(http.StatusServiceUnavailable, wire.CodeOutcomeUnknown),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A caller that is refused later must not believe that nothing was stored.
			c, s := scripted(t, []Option{WithRetryFor(200 * time.Millisecond)}, answer,
				refuses(http.StatusUnauthorized, wire.CodeUnauthorized))
			_, err := c.SaveDelayTask(t.Context(), "a", 1, 0)
			unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err)
			if !ok || fmt.Sprint(unknown.ID) != s.requests()[0].body["id"] {
				t.Errorf("got %v after %v", err, s.requests())
			}
		})
	}
}

// The first try may have rescheduled the task of the key, which runs when the second one meets it.
func TestALostSaveThatMeetsARunningTaskIsUnknown(t *testing.T) {
	t.Parallel()
	unknown := func(err error) {
		t.Helper()
		if !errors.Is(err, delaytask.ErrOutcomeUnknown) {
			t.Errorf("after a lost answer: %v, want an unknown outcome", err)
		}
	}
	item := delaytask.Item{Tag: "a", Body: 1, Options: []delaytask.Option{
		delaytask.WithKey("k"), delaytask.WithOnConflict(delaytask.ReplaceTime),
	}}
	c, _ := scripted(t, nil, lost, refuses(http.StatusConflict, wire.CodeNotPending))
	_, err := c.SaveDelayTask(t.Context(), item.Tag, item.Body, 0, item.Options...)
	unknown(err)
	busy := says(http.StatusOK, wire.BatchSaved{Results: []wire.BatchResult{{ID: 7, Code: wire.CodeNotPending}}})
	c, _ = scripted(t, nil, lost, busy)
	results, err := c.SaveDelayTasks(t.Context(), []delaytask.Item{item})
	unknown(err)
	unknown(results[0].Err)

	c, _ = scripted(t, nil, busy)
	results, _ = c.SaveDelayTasks(t.Context(), []delaytask.Item{item})
	if r := results[0]; !errors.Is(r.Err, delaytask.ErrNotPending) || r.ID != 7 {
		t.Errorf("without a lost answer: %+v", r)
	}
}

func TestASaveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, nil, says(http.StatusGatewayTimeout, nil))
	var ctx context.Context
	for len(s.requests()) == 0 { // a machine may stand still until the context has ended
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.SaveDelayTask(ctx, "a", 1, 0)
		if len(s.requests()) > 0 && !errors.Is(err, delaytask.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.SaveDelayTask(ctx, "a", 1, 0); !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, delaytask.ErrOutcomeUnknown) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestASaveThatNeverArrivedIsNotUnknown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	mustOK(t, err)
	address := listener.Addr().String()
	_ = listener.Close()
	c, err := New("http://"+address, WithRetryFor(100*time.Millisecond))
	mustOK(t, err)
	if _, err := c.SaveDelayTask(t.Context(), "a", 1, 0); !errors.Is(err, ErrNoAnswer) ||
		errors.Is(err, delaytask.ErrOutcomeUnknown) || !errors.Is(err, delaytask.ErrNotStored) {
		t.Errorf("no server listens: %v", err)
	}
	if _, err := c.SaveDelayTask(t.Context(), "a", 1, 0, delaytask.WithID(NewID())); !errors.Is(err,
		delaytask.ErrOutcomeUnknown) || !errors.Is(err, delaytask.ErrNotStored) {
		t.Errorf("no server listens, saved again: %v", err)
	}
	over, _ := scripted(t, []Option{WithRetryFor(100 * time.Millisecond)}, refuses(http.StatusServiceUnavailable,
		wire.CodeOverloaded))
	if _, err := over.SaveDelayTask(t.Context(), "a", 1, 0); !errors.Is(err, delaytask.ErrOverloaded) ||
		errors.Is(err, delaytask.ErrOutcomeUnknown) {
		t.Errorf("overloaded: %v", err)
	}
}

// A service that has reached no database cannot tell a new id from one that was saved before. The client can.
func TestASaveWithoutADatabaseIsUnknownOnlyAfterAnotherThatMayBeStored(t *testing.T) {
	t.Parallel()
	away := says(http.StatusServiceUnavailable, &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: wire.CodeOutcomeUnknown, Detail: "x", NotStored: true,
	})
	for name, test := range map[string]struct {
		first   http.HandlerFunc
		id      int64
		unknown bool
	}{
		"a new task": {first: away}, "a lost answer before": {first: lost, unknown: true},
		"an id of the caller's": {first: away, id: NewID(), unknown: true},
	} {
		c, _ := scripted(t, []Option{WithRetryFor(200 * time.Millisecond)}, test.first, away)
		var opts []delaytask.Option
		if test.id != 0 {
			opts = append(opts, delaytask.WithID(test.id))
		}
		_, err := c.SaveDelayTask(t.Context(), "a", 1, 0, opts...)
		if errors.Is(err, delaytask.ErrOutcomeUnknown) != test.unknown ||
			!test.unknown && !errors.Is(err, delaytask.ErrNotStored) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A handshake that ends early has sent nothing of the request.
func TestASaveThatFindsNoTrustedServerIsNotUnknown(t *testing.T) {
	t.Parallel()
	trap := httptest.NewTLSServer(http.HandlerFunc(confirms))
	trap.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(trap.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	mustOK(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for _, address := range []string{trap.URL, "https://" + silent.Addr().String()} {
		c, err := New(address, WithRetryFor(100*time.Millisecond))
		mustOK(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := c.SaveDelayTask(ctx, "a", 1, 0); err == nil || errors.Is(err, delaytask.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestBadSavesAreRefusedBeforeTheNetwork(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, nil, confirms)
	for _, body := range []any{"\xff", func() {}} {
		if _, err := c.SaveDelayTask(t.Context(), "a", body, 0); !errors.Is(err, delaytask.ErrInvalidBody) {
			t.Errorf("%v: %v", body, err)
		}
		_, err := c.SaveDelayTasks(t.Context(), []delaytask.Item{{Tag: "a", Body: 1}, {Tag: "a", Body: body}})
		if wrong, ok := errors.AsType[*delaytask.BatchError](err); !ok || wrong.Index != 1 {
			t.Errorf("%v in a batch: %v", body, err)
		}
	}
	_, err := c.SaveDelayTask(t.Context(), "a", 1, 0, delaytask.WithID(42))
	if !errors.Is(err, delaytask.ErrInvalidID) {
		t.Errorf("an id that cannot be: %v", err)
	}
	if _, err := c.SetBody(t.Context(), delaytask.ID(1), "\xff"); !errors.Is(err, delaytask.ErrInvalidBody) {
		t.Errorf("a new body that is not UTF-8: %v", err)
	}
	_, err = c.SaveDelayTasks(t.Context(), make([]delaytask.Item, request.MaxItems+1))
	if !errors.Is(err, delaytask.ErrBatchTooLarge) {
		t.Errorf("too many: %v", err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestASaveSendsWhatItsOptionsSay(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, nil, confirms)
	at := time.Date(2027, 1, 31, 8, 30, 0, 1, time.UTC)
	_, err := c.SaveDelayTask(t.Context(), "a", map[string]string{"a": "<&>"}, 0,
		delaytask.WithTime(at), delaytask.WithKey("k"), delaytask.WithTTR(time.Minute), delaytask.WithNoAttemptLimit(),
		delaytask.WithPriority(-5),
		delaytask.WithHeaders(map[string]string{"traceparent": "x", delaytask.AppHeader: "shop"}),
		delaytask.WithMaxLateness(time.Hour, delaytask.LateFail))
	mustOK(t, err)
	body := s.requests()[0].body
	id, err := strconv.ParseInt(fmt.Sprint(body["id"]), 10, 64)
	if err != nil || id <= 0 {
		t.Errorf("id %v", body["id"])
	}
	delete(body, "id")
	want := map[string]any{
		"tag": "a", "body": map[string]any{"a": "<&>"}, "at": "2027-01-31T08:30:00.001Z", "key": "k", "ttr": "1m",
		"no_attempt_limit": true,
		"priority":         -5.0, "headers": map[string]any{"traceparent": "x"}, "app": "shop", "max_lateness": "1h",
		"late_policy": "fail",
	}
	if fmt.Sprint(body) != fmt.Sprint(want) {
		t.Errorf("sent %v\nwant %v", body, want)
	}
}

func TestABatchAnswersForEachOfItsTasks(t *testing.T) {
	t.Parallel()
	items := []delaytask.Item{{Tag: "a"}, {Tag: "a"}, {Tag: "a"}, {Tag: "a"}}
	c, _ := scripted(t, nil, lost, says(http.StatusOK, wire.BatchSaved{Results: []wire.BatchResult{
		{ID: 5}, {ID: 6, Duplicate: true}, {ID: 7, Code: wire.CodeOutcomeUnknown, Detail: "x"},
		{Code: wire.CodeConflict,
			Detail: "x"},
	}}))
	results, err := c.SaveDelayTasks(t.Context(), items)
	if !errors.Is(err, delaytask.ErrOutcomeUnknown) || len(results) != 4 {
		t.Fatalf("got %v, %v", results, err)
	}
	if results[0] != (delaytask.SaveResult{ID: 5}) || results[1].ID != 6 ||
		!errors.Is(results[1].Err, delaytask.ErrDuplicate) ||
		!errors.Is(results[2].Err, delaytask.ErrOutcomeUnknown) || !errors.Is(results[3].Err, delaytask.ErrConflict) {
		t.Errorf("got %v", results)
	}
}

func TestABatchWithoutAnAnswerTellsTheIDs(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, []Option{WithRetryFor(100 * time.Millisecond)}, lost)
	results, err := c.SaveDelayTasks(t.Context(), []delaytask.Item{{Tag: "a"}, {Tag: "a"}})
	if !errors.Is(err, delaytask.ErrOutcomeUnknown) || len(results) != 2 {
		t.Fatalf("got %v, %v", results, err)
	}
	ids := map[int64]bool{}
	for _, r := range results {
		unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](r.Err)
		if !ok {
			t.Fatalf("got %v", r)
		}
		ids[unknown.ID] = true
	}
	if len(ids) != 2 || ids[0] {
		t.Errorf("the ids are %v", ids)
	}
}

func TestTheServiceNamesTheWrongTaskOfABatch(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, nil, says(http.StatusBadRequest, &wire.Problem{
		Status: http.StatusBadRequest, Code: wire.CodeInvalidHeaders, Detail: "body[1]: reserved",
		Errors: []wire.Detail{{Location: "body[1]"}},
	}))
	results, err := c.SaveDelayTasks(t.Context(), []delaytask.Item{{Tag: "a"}, {Tag: "a"}})
	wrong, ok := errors.AsType[*delaytask.BatchError](err)
	if !ok || wrong.Index != 1 || !errors.Is(err, delaytask.ErrInvalidHeaders) || results != nil {
		t.Errorf("got %v, %v", results, err)
	}
}
