package api

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// traceparent is the header of a sampled span.
func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"
}

func TestSpansOfSavesThatFail(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	f.save(t, "mail", time.Hour, delaytask.WithKey("7"))
	negative := delaytask.Item{Tag: "mail", Delay: -1}
	for name, tt := range map[string]struct {
		items []delaytask.Item // one is saved alone
		err   error
		span  string
	}{
		"no tag":           {[]delaytask.Item{{Tag: "not a tag"}}, delaytask.ErrInvalidTag, "send"},
		"a negative delay": {[]delaytask.Item{negative}, delaytask.ErrInvalidDelay, "send mail"},
		"one of many":      {[]delaytask.Item{{Tag: "mail"}, negative}, delaytask.ErrInvalidDelay, "send mail"},
		"a taken key": {[]delaytask.Item{{Tag: "mail",
			Options: []delaytask.Option{delaytask.WithKey("7")}}}, delaytask.ErrDuplicate, "send mail"},
	} {
		before := len(f.spans(tt.span))
		var err error
		if item := tt.items[0]; len(tt.items) == 1 {
			_, err = f.SaveDelayTask(f.ctx, item.Tag, nil, item.Delay, item.Options...)
		} else {
			_, err = f.SaveDelayTasks(f.ctx, tt.items)
		}
		wantError(t, name, err, tt.err)
		named := f.spans(tt.span)
		if len(named) != before+1 {
			t.Fatalf("%s: %d new spans %q, want 1", name, len(named)-before, tt.span)
		}
		met := errors.Is(tt.err, delaytask.ErrDuplicate)
		if last := named[len(named)-1]; (last.Status.Code == codes.Error) == met {
			t.Errorf("%s: status %v", name, last.Status)
		} else if met {
			wantAttributes(t, last, map[attribute.Key]any{"messaging.delaytask.duplicate": true})
		}
	}
}

func TestBulkSaveHasOneSpanWhoseContextGoesIntoEveryTask(t *testing.T) {
	t.Parallel()
	f := newTraced(t)
	own := delaytask.WithHeader("color", "red")
	same := []delaytask.Item{{Tag: "a", Delay: time.Hour},
		{Tag: "a", Delay: time.Hour, Options: []delaytask.Option{own}}}
	mixed := []delaytask.Item{{Tag: "a", Delay: time.Hour}, {Tag: "b", Delay: time.Hour}, {Tag: "a", Delay: time.Hour}}
	for name, items := range map[string][]delaytask.Item{"send a": same, "send": mixed} {
		results, err := f.SaveDelayTasks(f.ctx, items)
		servertest.OK(t, err)
		span := f.one(t, name)
		wantAttributes(t, span, map[attribute.Key]any{"messaging.batch.message_count": int64(len(items))})
		for i, r := range results {
			if got := get(t, f, r.ID).Headers["traceparent"]; got != traceparent(span.SpanContext) {
				t.Errorf("%s, task %d: traceparent %q", name, i, got)
			}
		}
	}
	if n := len(f.Saved(t, "a", delaytasktest.Header("color", "red"))); n != 1 {
		t.Errorf("%d tasks have the header of one", n)
	}
}

func TestSaveInATransactionIsTraced(t *testing.T) {
	t.Parallel()
	recorder, provider := record()
	s, d := embedded(t, func(c *scheduler.Config) { c.TracerProvider = provider })
	tx := begin(t, d)
	id, err := s.SaveDelayTaskTx(t.Context(), tx, "mail", nil, time.Hour)
	servertest.OK(t, errors.Join(err, tx.Commit()))
	_, err = s.SaveDelayTaskTx(t.Context(), tx, "late", nil, time.Hour)
	wantError(t, "after the commit", err, sql.ErrTxDone)
	send := recorder.one(t, "send mail")
	got := get(t, s, id).Headers["traceparent"]
	if got != traceparent(send.SpanContext) || send.Status.Code != codes.Unset {
		t.Errorf("traceparent %q of %v, status %v", got, send.SpanContext, send.Status)
	}
	if late := recorder.one(t, "send late"); late.Status.Code != codes.Error {
		t.Errorf("status of a save after the commit: %v", late.Status)
	}
}

func TestSaveThatIsCutOffSaysThatItsOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	recorder, provider := record()
	s, d := embedded(t, func(c *scheduler.Config) { c.TracerProvider = provider })
	blocker := begin(t, d) // holds the file's only write lock
	var unknown *delaytask.OutcomeUnknownError
	var err error
	ok := false
	for tries := 0; !ok && tries < 10; tries++ { // a save that was not sent in time ends as any other
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = s.SaveDelayTask(ctx, "t", 1, time.Hour)
		cancel()
		unknown, ok = errors.AsType[*delaytask.OutcomeUnknownError](err)
	}
	if !ok || !errors.Is(err, delaytask.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want an OutcomeUnknownError", err)
	}
	spans := recorder.spans("send t")
	if last := spans[len(spans)-1]; last.Status.Code != codes.Error {
		t.Errorf("status %v", last.Status)
	} else {
		wantAttributes(t, last, map[attribute.Key]any{"error.type": "outcome_unknown"})
	}
	servertest.OK(t, blocker.Rollback())
	if id := save(t, s, "t", time.Hour, delaytask.WithID(unknown.ID)); id != unknown.ID || total(t, s) != 1 {
		t.Errorf("saved again as %d, and %d tasks; want %d and 1", id, total(t, s), unknown.ID)
	}
}

func TestTraceContextPassesThroughWithoutAProvider(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=seven")
	servertest.OK(t, err)
	caller := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	ctx := trace.ContextWithSpanContext(t.Context(), caller)
	given := map[string]string{"traceparent": traceparent(caller), "tracestate": "vendor=seven"}
	with := func(name, value string) map[string]string {
		both := maps.Clone(given)
		both[name] = value
		return both
	}
	only := func(name, value string) map[string]string { return map[string]string{name: value} }
	full := strings.Repeat("x", 16<<10-len(`{"a":""}`)) // not a byte is left
	// Room for exactly the trace is left.
	fits := full[:len(full)-len(`,"traceparent":"","tracestate":"vendor=seven"`)-55]
	for name, tt := range map[string]struct {
		ctx     context.Context
		headers map[string]string
		want    map[string]string
	}{
		"alone":                                {ctx, nil, given},
		"no span":                              {t.Context(), nil, nil},
		"no span, with headers":                {t.Context(), only("a", "b"), only("a", "b")},
		"with headers":                         {ctx, only("a", "b"), with("a", "b")},
		"own traceparent":                      {ctx, only("traceparent", "mine"), only("traceparent", "mine")},
		"own tracestate":                       {ctx, only("tracestate", "mine"), only("tracestate", "mine")},
		"headers that fill the row":            {ctx, only("a", full), only("a", full)},
		"headers that leave a byte too little": {ctx, only("a", fits+"x"), only("a", fits+"x")},
		"headers that leave enough":            {ctx, only("a", fits), with("a", fits)},
	} {
		s := delaytasktest.New(t)
		before := maps.Clone(tt.headers)
		id, err := s.SaveDelayTask(tt.ctx, "t", nil, time.Hour, delaytask.WithHeaders(tt.headers))
		servertest.OK(t, err)
		if got := get(t, s, id).Headers; !maps.Equal(got, tt.want) {
			t.Errorf("%s: headers %.200v, want %.200v", name, got, tt.want)
		}
		if !maps.Equal(tt.headers, before) {
			t.Errorf("%s: the caller's map was changed", name)
		}
	}
}
