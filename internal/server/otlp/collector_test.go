package otlp

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// roundTrip is a collector without a network, which works in a synctest bubble.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answered is an answer whose body must not be read.
func answered(status int, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("canary"))}
	resp.Header.Set("Content-Type", "application/x-protobuf")
	for i := 0; i < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

// hang answers nothing, ever.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// counts is the outcome of spans, and what was logged.
type counts struct {
	mu     sync.Mutex
	spans  map[string]int
	logged strings.Builder
}

func (c *counts) count(result string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans[result] += n
}

func (c *counts) of(result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[result]
}

func (c *counts) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logged.Write(p)
}

func (c *counts) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Split(strings.TrimSpace(c.logged.String()), "\n")
}

// exporter makes one of the variables and of http://collector:4318.
func exporter(t *testing.T, env variables) (*Exporter, *counts) {
	t.Helper()
	all := variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
	for name, value := range env {
		all[name] = value
	}
	for name, value := range all {
		t.Setenv(name, value) // which the SDK reads
	}
	s, err := FromEnv(all.get)
	servertest.OK(t, err)
	c := &counts{spans: map[string]int{}}
	e, err := New(context.Background(), Config{
		Settings: s, Service: "delaytask", Version: "v1", Log: slog.New(slog.NewTextHandler(c, nil)), Count: c.count,
		Mask: func(text string) string { return strings.ReplaceAll(text, "secret", "mask") },
	})
	servertest.OK(t, err)
	return e, c
}

// spans makes so many.
func (e *Exporter) spans(t *testing.T, n int) {
	t.Helper()
	for range n {
		_, span := e.Provider().Tracer("test").Start(t.Context(), "span")
		span.End()
	}
}

// read decodes what was posted.
func read(t *testing.T, r *http.Request) *tracepb.TracesData {
	t.Helper()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return nil
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	data := &tracepb.TracesData{}
	if err := proto.Unmarshal(text, data); err != nil {
		t.Error(err)
	}
	return data
}
