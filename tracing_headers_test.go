package delaytask_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
)

// calling is a context with the span of a caller whose trace has a state.
func calling(t *testing.T) (context.Context, trace.SpanContext) {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=seven")
	if err != nil {
		t.Fatal(err)
	}
	sc := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	return trace.ContextWithSpanContext(t.Context(), sc), sc
}

func TestTraceContextPassesThroughWithoutAProvider(t *testing.T) {
	t.Parallel()
	ctx, caller := calling(t)
	given := map[string]string{"traceparent": traceparent(caller), "tracestate": "vendor=seven"}
	with := func(name, value string) map[string]string {
		both := maps.Clone(given)
		both[name] = value
		return both
	}
	full := strings.Repeat("x", 16<<10-len(`{"a":""}`))                              // not a byte is left
	fits := full[:len(full)-len(`,"traceparent":"","tracestate":"vendor=seven"`)-55] // as much as the trace takes is left
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		headers map[string]string
		want    map[string]string
	}{
		{"alone", ctx, nil, given},
		{"no span", t.Context(), nil, nil},
		{"no span, with headers", t.Context(), map[string]string{"a": "b"}, map[string]string{"a": "b"}},
		{"with headers", ctx, map[string]string{"a": "b"}, with("a", "b")},
		{"own traceparent", ctx, map[string]string{"traceparent": "mine"}, map[string]string{"traceparent": "mine"}},
		{"own tracestate", ctx, map[string]string{"tracestate": "mine"}, map[string]string{"tracestate": "mine"}},
		{"headers that fill the row", ctx, map[string]string{"a": full}, map[string]string{"a": full}},
		{"headers that leave a byte too little", ctx, map[string]string{"a": fits + "x"}, map[string]string{"a": fits + "x"}},
		{"headers that leave enough", ctx, map[string]string{"a": fits}, with("a", fits)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := delaytasktest.New(t)
			before := maps.Clone(tt.headers)
			id, err := s.SaveDelayTask(tt.ctx, "t", nil, time.Hour, delaytask.WithHeaders(tt.headers))
			if err != nil {
				t.Fatal(err)
			}
			if got := headersOf(t, s.Scheduler, id); !maps.Equal(got, tt.want) {
				t.Errorf("headers %.200v, want %.200v", got, tt.want)
			}
			if !maps.Equal(tt.headers, before) {
				t.Error("the caller's map was changed")
			}
		})
	}
}
