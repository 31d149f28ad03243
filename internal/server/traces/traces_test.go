package traces

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func recorder() (trace.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"), spans
}

func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func TestARequestIsASpanOfItsCallersTrace(t *testing.T) {
	t.Parallel()
	f := func(method, route string, status int, wantName, wantMethod string, wantStatus codes.Code) {
		t.Helper()
		tracer, spans := recorder()
		handler := Extracted(nil, Served(tracer, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			Answered(r.Context(), method, route, status)
		})))
		r := httptest.NewRequestWithContext(t.Context(), method, "/v1/tags/t/keys/secret", nil)
		r.Header.Set("traceparent", parent)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		ended := spans.Ended()
		if len(ended) != 1 {
			t.Fatalf("%d spans", len(ended))
		}
		got := ended[0]
		attributes := attributesOf(got)
		if got.Name() != wantName || got.SpanKind() != trace.SpanKindServer || got.Status().Code != wantStatus ||
			got.Parent().SpanID().String() != "b7ad6b7169203331" || !got.Parent().IsRemote() {
			t.Errorf("%s %s %d: %s, %v, %v, of %v", method, route, status, got.Name(), got.SpanKind(), got.Status(),
				got.Parent())
		}
		if attributes["http.request.method"] != wantMethod || attributes["http.route"] != route {
			t.Errorf("%s %s %d: %v", method, route, status, attributes)
		}
		if _, failed := attributes["error.type"]; failed != (status >= 500) {
			t.Errorf("%s %s %d: %v", method, route, status, attributes)
		}
	}
	f("POST", "/v1/tasks", 201, "POST /v1/tasks", "POST", codes.Unset)
	f("GET", "/v1/tags/{tag}/keys/{key}", 404, "GET /v1/tags/{tag}/keys/{key}", "GET", codes.Unset)
	f("DELETE", "", 404, "DELETE", "DELETE", codes.Unset)
	f("PATCH", "/v1/tasks/{id}", 503, "PATCH /v1/tasks/{id}", "PATCH", codes.Error)
	f("BREW", "/v1/tasks", 405, "HTTP /v1/tasks", "_OTHER", codes.Unset)
}

func TestWatchersMakeNoSpans(t *testing.T) {
	t.Parallel()
	tracer, spans := recorder()
	calls := 0
	handler := Served(tracer, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		Answered(r.Context(), r.Method, "/", 200)
		calls++
	}))
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	}
	if calls != 3 || len(spans.Started()) != 0 {
		t.Errorf("%d calls, %d spans", calls, len(spans.Started()))
	}
}

func TestASpanEndsWithARequestThatIsCut(t *testing.T) {
	t.Parallel()
	tracer, spans := recorder()
	handler := Served(tracer, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer func() {
		if cut := recover(); cut == nil || len(spans.Ended()) != 1 {
			t.Errorf("%v: %d spans have ended", cut, len(spans.Ended()))
		}
	}()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
}

func TestACallIsASpanThatItsReceiverSees(t *testing.T) {
	t.Parallel()
	f := func(host string, status int, err error, want map[string]string, wantStatus codes.Code) {
		t.Helper()
		tracer, spans := recorder()
		ctx, attempt := tracer.Start(t.Context(), "attempt")
		ctx, end := Called(tracer)(ctx, "PUT", host)
		header := http.Header{}
		Inject(ctx, header)
		end(status, err)
		attempt.End()
		got := spans.Ended()[0]
		if got.Name() != "PUT" || got.SpanKind() != trace.SpanKindClient ||
			got.Parent().SpanID() != attempt.SpanContext().SpanID() || got.Status().Code != wantStatus {
			t.Errorf("%s, %v, %v, of %v", got.Name(), got.SpanKind(), got.Status(), got.Parent())
		}
		sc := got.SpanContext()
		if want := "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() +
			"-01"; header.Get("traceparent") != want {
			t.Errorf("the receiver sees %q, want %q", header.Get("traceparent"), want)
		}
		attributes := attributesOf(got)
		for name, value := range want {
			if attributes[name] != value {
				t.Errorf("%s is %q, want %q", name, attributes[name], value)
			}
		}
		if len(attributes) != len(want) {
			t.Errorf("got %v, want %v", attributes, want)
		}
	}
	f("shop.example:443", 200, nil, map[string]string{
		"http.request.method": "PUT", "server.address": "shop.example", "server.port": "443",
		"http.response.status_code": "200",
	}, codes.Unset)
	f("[::1]:80", 503, errors.New("refused"), map[string]string{
		"http.request.method": "PUT", "server.address": "::1", "server.port": "80", "http.response.status_code": "503",
		"error.type": "503",
	}, codes.Error)
	f("shop.example", 0, context.DeadlineExceeded, map[string]string{
		"http.request.method": "PUT", "server.address": "shop.example", "error.type": "context.deadlineExceededError",
	}, codes.Error)
}

func TestATraceOfTheCallsOwnStays(t *testing.T) {
	t.Parallel()
	tracer, _ := recorder()
	ctx, span := tracer.Start(t.Context(), "attempt")
	defer span.End()
	header := http.Header{"Traceparent": {parent}}
	Inject(ctx, header)
	if got := header.Get("traceparent"); got != parent {
		t.Errorf("got %q", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// serve returns the context in which the handler gets a request with the headers.
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
		{"with an invalid state", map[string]string{"traceparent": parent, "tracestate": "="}, true, ""},
		{"nothing", nil, false, ""},
		{"a state alone", map[string]string{"tracestate": "vendor=seven"}, false, ""},
		{"rubbish", map[string]string{"traceparent": "00-rubbish"}, false, ""},
		{"zeros", map[string]string{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, false,
			""},
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
	if got := baggage.FromContext(ctx).Member("tenant").Value(); got != "7" ||
		trace.SpanContextFromContext(ctx).IsValid() {
		t.Errorf("tenant %q, trace %v", got, trace.SpanContextFromContext(ctx))
	}
}
