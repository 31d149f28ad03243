package webhook

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient makes a client that may call servers of the test.
func newClient(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	guard, err := NewGuard(GuardConfig{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Guard: guard, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func someTask() *processor.Task {
	return &processor.Task{ID: 42, Tag: "order.close", Attempt: 3, Version: 7,
		Expected: time.Date(2026, 5, 6, 7, 8, 9, 120_000_000, time.UTC)}
}
