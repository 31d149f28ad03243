package client

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a service with the answers of a test: the n-th request gets the n-th answer, further ones the last.
type script struct {
	mu      sync.Mutex
	answers []http.HandlerFunc
	seen    []seen
}

// seen is a request as it arrived.
type seen struct {
	method, path, auth string
	body               map[string]any
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	one := seen{method: r.Method, path: r.URL.EscapedPath(), auth: r.Header.Get("Authorization")}
	_ = json.Unmarshal(data, &one.body)
	s.mu.Lock()
	answer := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, one)
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// scripted returns a client of a service that gives these answers.
func scripted(t *testing.T, opts []Option, answers ...http.HandlerFunc) (*Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(server.URL, append([]Option{
		WithLogger(slog.New(slog.DiscardHandler)), WithRetryFor(10 * time.Second), WithAccessToken(canary),
	}, opts...)...)
	mustOK(t, err)
	t.Cleanup(func() { _ = c.Stop(t.Context()) })
	return c, s
}

// canary must never be seen.
const canary = "dt_canary-canary-canary"

// lost takes the request and answers nothing.
func lost(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func says(status int, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, ok := v.(*wire.Problem); ok {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

func refuses(status int, code string) http.HandlerFunc {
	return says(status, &wire.Problem{Status: status, Code: code, Detail: "it is " + code})
}

// confirms answers a save with the task that was sent.
func confirms(w http.ResponseWriter, r *http.Request) {
	says(http.StatusCreated, wire.Saved{Task: wire.Task{ID: 7, Status: "pending"}})(w, r)
}

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
