package traces

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// serve returns the context that a request with the headers reaches its handler with.
func serve(t *testing.T, p propagation.TextMapPropagator, headers map[string]string) (got context.Context) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tasks", nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Context() })
	Extracted(p, next).ServeHTTP(httptest.NewRecorder(), r)
	return got
}

func TestRequestsCarryTheTraceOfTheirCaller(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		headers map[string]string
		valid   bool
		state   string
	}{
		{"a trace", map[string]string{"traceparent": parent}, true, ""},
		{"with a state", map[string]string{"traceparent": parent, "tracestate": "vendor=seven"}, true, "vendor=seven"},
		{"with a state that is none", map[string]string{"traceparent": parent, "tracestate": "="}, true, ""},
		{"nothing", nil, false, ""},
		{"a state alone", map[string]string{"tracestate": "vendor=seven"}, false, ""},
		{"rubbish", map[string]string{"traceparent": "00-rubbish"}, false, ""},
		{"zeros", map[string]string{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := trace.SpanContextFromContext(serve(t, nil, tt.headers))
			if sc.IsValid() != tt.valid || sc.IsRemote() != tt.valid || sc.TraceState().String() != tt.state {
				t.Errorf("got %v, remote %v, state %q", sc.TraceID(), sc.IsRemote(), sc.TraceState())
			}
		})
	}
}

func TestPropagatorOfTheCallerCounts(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"traceparent": parent, "baggage": "tenant=7"}
	ctx := serve(t, propagation.Baggage{}, headers)
	if got := baggage.FromContext(ctx).Member("tenant").Value(); got != "7" || trace.SpanContextFromContext(ctx).IsValid() {
		t.Errorf("tenant %q, trace %v", got, trace.SpanContextFromContext(ctx))
	}
}
