package service

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// collector receives spans like a collector of OpenTelemetry.
type collector struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	requests int
	header   http.Header
	services map[string]bool
	spans    []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t, services: map[string]bool{}}
	c.url = servertest.Listen(t, c.ServeHTTP)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.header = r.Header.Clone()
	if err != nil || r.Method != "POST" || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("the collector gets %s %s %v: %v", r.Method, r.URL, r.Header, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, of := range data.ResourceSpans {
		c.services[attribute(of.Resource.Attributes, "service.name")] = true
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *collector) named(name string) (found []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// one returns the only span of a name.
func (c *collector) one(name string) *tracepb.Span {
	c.t.Helper()
	found := c.named(name)
	if len(found) != 1 {
		c.t.Fatalf("%d spans are called %q", len(found), name)
	}
	return found[0]
}

func attribute(all []*commonpb.KeyValue, name string) string {
	for _, a := range all {
		if a.Key == name {
			if text, ok := a.Value.Value.(*commonpb.AnyValue_StringValue); ok {
				return text.StringValue
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

// tracedTo are the variables of a server that sends its spans there at short intervals.
func tracedTo(url string, more ...string) []string {
	return append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_BSP_SCHEDULE_DELAY=100"}, more...)
}

func TestATraceGoesFromTheCallerThroughTheDelayToTheReceiver(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		c := newCollector(t)
		s := serve(t, db, tracedTo(c.url, "OTEL_EXPORTER_OTLP_HEADERS=api-key=of%20mine",
			"OTEL_SERVICE_NAME=shop-tasks")...)
		if want := "traces     sent to " + strings.TrimPrefix(c.url, "http://") +
			"\n"; !strings.Contains(s.Out.String(), want) {
			t.Errorf("it says\n%s", s.Out)
		}
		seen := make(chan string, 10)
		receiver := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) {
			seen <- r.Header.Get("Traceparent")
		})
		const caller, callers = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		s.Want(201, "", "POST", "/v1/tasks", `{"tag":"http","delay":"300ms","body":{"url":"`+receiver+`/secret-path"}}`,
			"traceparent", "00-"+caller+"-"+callers+"-01")
		traceparent := servertest.Receive(t, seen, "the receiver is called")
		s.Want(200, "", "GET", "/healthz", "")
		s.Want(404, "not_found", "GET", "/v1/tags/t/keys/secret-key", "")
		servertest.Eventually(t, "the spans are sent", func() bool {
			return len(c.named("POST")) > 0 && len(c.named("process http")) > 0 &&
				len(c.named("GET /v1/tags/{tag}/keys/{key}")) > 0
		})
		request, save, attempt, call := c.one("POST /v1/tasks"), c.one("send http"), c.one("process http"),
			c.one("POST")
		hex := func(id []byte) string { return fmt.Sprintf("%x", id) }
		if hex(request.TraceId) != caller || hex(request.ParentSpanId) != callers ||
			request.Kind != tracepb.Span_SPAN_KIND_SERVER ||
			attribute(request.Attributes, "http.response.status_code") != "201" ||
			attribute(request.Attributes, "http.route") != "/v1/tasks" {
			t.Errorf("the request's span is %v", request)
		}
		if hex(save.TraceId) != caller || hex(save.ParentSpanId) != hex(request.SpanId) {
			t.Errorf("the save's span is %v", save)
		}
		if len(attempt.Links) != 1 || hex(attempt.Links[0].TraceId) != caller ||
			hex(attempt.Links[0].SpanId) != hex(save.SpanId) ||
			hex(attempt.TraceId) == caller || len(attempt.ParentSpanId) != 0 {
			t.Errorf("the attempt's span is %v", attempt)
		}
		if hex(call.TraceId) != hex(attempt.TraceId) || hex(call.ParentSpanId) != hex(attempt.SpanId) ||
			call.Kind != tracepb.Span_SPAN_KIND_CLIENT || attribute(call.Attributes, "server.address") != "127.0.0.1" {
			t.Errorf("the call's span is %v", call)
		}
		if want := "00-" + hex(call.TraceId) + "-" + hex(call.SpanId) + "-01"; traceparent != want {
			t.Errorf("the receiver sees %s, want %s", traceparent, want)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.header.Get("Api-Key") != "of mine" || !c.services["shop-tasks"] || len(c.services) != 1 {
			t.Errorf("the collector gets %v of %v", c.header, c.services)
		}
		for _, span := range c.spans {
			if text := span.String(); strings.Contains(text, "healthz") || strings.Contains(text, "secret-") {
				t.Errorf("there is a span %s", text)
			}
		}
	})
}

func TestSpansAreMadeOnlyWhereTheEnvironmentSaysSo(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	for _, env := range [][]string{nil, tracedTo(c.url, "OTEL_SDK_DISABLED=true")} {
		s := serve(t, dbtest.New(t, dbtest.SQLite), env...)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		s.Want(201, "", "POST", "/v1/tasks", `{"tag":"t"}`, "traceparent", trace)
		if got := s.Pop("t", "").Headers["traceparent"]; got != trace {
			t.Errorf("%v: the worker gets the trace %q", env, got)
		}
		metrics := s.Call("GET", "/metrics", "").Text
		if strings.Contains(metrics, "delaytask_trace") || strings.Contains(s.Out.String(), "traces") {
			t.Errorf("%v: it makes spans:\n%s", env, s.Out)
		}
		s.Stops()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests != 0 {
		t.Errorf("the collector got %d requests", c.requests)
	}
}

func TestACollectorThatHangsDelaysNoCaller(t *testing.T) {
	t.Parallel()
	tried := make(chan struct{}, 1000)
	hanging := servertest.Listen(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		tried <- struct{}{}
		<-r.Context().Done()
	})
	s := serve(t, dbtest.New(t, dbtest.SQLite), tracedTo(hanging, "OTEL_BSP_MAX_QUEUE_SIZE=20")...)
	s.Save(`{"tag":"first"}`)
	servertest.Receive(t, tried, "the collector hangs")
	for range 30 {
		s.Save(`{"tag":"t"}`)
	}
	s.Pop("t", "")
	servertest.Eventually(t, "lost spans are counted", func() bool {
		metrics := s.Call("GET", "/metrics", "").Text
		return strings.Contains(metrics, `delaytask_trace_spans_total{result="overflow"}`) &&
			!strings.Contains(metrics, `delaytask_trace_spans_total{result="overflow"} 0`)
	})
	s.Stops()
	if lines := strings.Count(s.Err.String(), "spans are lost"); lines == 0 || lines > 10 {
		t.Errorf("%d lines tell of it: %s", lines, s.Err)
	}
}
