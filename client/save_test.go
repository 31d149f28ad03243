package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
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
			unknown, ok := errors.AsType[*processor.OutcomeUnknownError](err)
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
		if !errors.Is(err, processor.ErrOutcomeUnknown) {
			t.Errorf("after a lost answer: %v, want an unknown outcome", err)
		}
	}
	item := processor.Item{Tag: "a", Body: 1, Options: []processor.Option{
		processor.WithKey("k"), processor.WithOnConflict(processor.ReplaceTime),
	}}
	c, _ := scripted(t, nil, lost, refuses(http.StatusConflict, wire.CodeNotPending))
	_, err := c.SaveDelayTask(t.Context(), item.Tag, item.Body, 0, item.Options...)
	unknown(err)
	busy := says(http.StatusOK, wire.BatchSaved{Results: []wire.BatchResult{{ID: 7, Code: wire.CodeNotPending}}})
	c, _ = scripted(t, nil, lost, busy)
	results, err := c.SaveDelayTasks(t.Context(), []processor.Item{item})
	unknown(err)
	unknown(results[0].Err)

	c, _ = scripted(t, nil, busy)
	results, _ = c.SaveDelayTasks(t.Context(), []processor.Item{item})
	if r := results[0]; !errors.Is(r.Err, processor.ErrNotPending) || r.ID != 7 {
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
		if len(s.requests()) > 0 && !errors.Is(err, processor.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := c.SaveDelayTask(ctx, "a", 1, 0); !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, processor.ErrOutcomeUnknown) {
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
		errors.Is(err, processor.ErrOutcomeUnknown) {
		t.Errorf("no server listens: %v", err)
	}
	over, _ := scripted(t, []Option{WithRetryFor(100 * time.Millisecond)}, refuses(http.StatusServiceUnavailable,
		wire.CodeOverloaded))
	if _, err := over.SaveDelayTask(t.Context(), "a", 1, 0); !errors.Is(err, processor.ErrOverloaded) ||
		errors.Is(err, processor.ErrOutcomeUnknown) {
		t.Errorf("overloaded: %v", err)
	}
}

func TestBadSavesAreRefusedBeforeTheNetwork(t *testing.T) {
	t.Parallel()
	c, s := scripted(t, nil, confirms)
	for _, body := range []any{"\xff", func() {}} {
		if _, err := c.SaveDelayTask(t.Context(), "a", body, 0); !errors.Is(err, processor.ErrInvalidBody) {
			t.Errorf("%v: %v", body, err)
		}
		_, err := c.SaveDelayTasks(t.Context(), []processor.Item{{Tag: "a", Body: 1}, {Tag: "a", Body: body}})
		if wrong, ok := errors.AsType[*processor.BatchError](err); !ok || wrong.Index != 1 {
			t.Errorf("%v in a batch: %v", body, err)
		}
	}
	_, err := c.SaveDelayTask(t.Context(), "a", 1, 0, processor.WithID(42))
	if !errors.Is(err, processor.ErrInvalidID) {
		t.Errorf("an id that cannot be: %v", err)
	}
	if _, err := c.SetBody(t.Context(), processor.ID(1), "\xff"); !errors.Is(err, processor.ErrInvalidBody) {
		t.Errorf("a new body that is not UTF-8: %v", err)
	}
	_, err = c.SaveDelayTasks(t.Context(), make([]processor.Item, processor.MaxItems+1))
	if !errors.Is(err, processor.ErrBatchTooLarge) {
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
		processor.WithTime(at), processor.WithKey("k"), processor.WithTTR(time.Minute), processor.WithNoAttemptLimit(),
		processor.WithPriority(-5),
		processor.WithHeaders(map[string]string{"traceparent": "x", processor.AppHeader: "shop"}),
		processor.WithMaxLateness(time.Hour, processor.LateFail))
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
	items := []processor.Item{{Tag: "a"}, {Tag: "a"}, {Tag: "a"}, {Tag: "a"}}
	c, _ := scripted(t, nil, lost, says(http.StatusOK, wire.BatchSaved{Results: []wire.BatchResult{
		{ID: 5}, {ID: 6, Duplicate: true}, {ID: 7, Code: wire.CodeOutcomeUnknown, Detail: "x"},
		{Code: wire.CodeConflict,
			Detail: "x"},
	}}))
	results, err := c.SaveDelayTasks(t.Context(), items)
	if !errors.Is(err, processor.ErrOutcomeUnknown) || len(results) != 4 {
		t.Fatalf("got %v, %v", results, err)
	}
	if results[0] != (processor.SaveResult{ID: 5}) || results[1].ID != 6 ||
		!errors.Is(results[1].Err, processor.ErrDuplicate) ||
		!errors.Is(results[2].Err, processor.ErrOutcomeUnknown) || !errors.Is(results[3].Err, processor.ErrConflict) {
		t.Errorf("got %v", results)
	}
}

func TestABatchWithoutAnAnswerTellsTheIDs(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, []Option{WithRetryFor(100 * time.Millisecond)}, lost)
	results, err := c.SaveDelayTasks(t.Context(), []processor.Item{{Tag: "a"}, {Tag: "a"}})
	if !errors.Is(err, processor.ErrOutcomeUnknown) || len(results) != 2 {
		t.Fatalf("got %v, %v", results, err)
	}
	ids := map[int64]bool{}
	for _, r := range results {
		unknown, ok := errors.AsType[*processor.OutcomeUnknownError](r.Err)
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
	results, err := c.SaveDelayTasks(t.Context(), []processor.Item{{Tag: "a"}, {Tag: "a"}})
	wrong, ok := errors.AsType[*processor.BatchError](err)
	if !ok || wrong.Index != 1 || !errors.Is(err, processor.ErrInvalidHeaders) || results != nil {
		t.Errorf("got %v, %v", results, err)
	}
}
