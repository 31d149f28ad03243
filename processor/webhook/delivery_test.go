package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestCallCarriesTheTask(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{
			"Webhook-Id": "42", "Delaytask-Id": "42", "Delaytask-Tag": "order.close", "Delaytask-Attempt": "3",
			"Delaytask-Crashes": "2",
			"Delaytask-Token":   "42.7", "Delaytask-Expected": "2026-05-06T07:08:09.120Z", "Traceparent": trace,
			"X-Own": "yes", "User-Agent": "delaytask", "X-Injected": "yes", "Webhook-Signature": "", "Tracestate": "",
			"Accept-Encoding": "", "Idempotency-Key": "",
			"Delaytask-Schedule": "report/daily", "Delaytask-Tick": "2026-05-06T07:00:00Z",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "hello" || r.Method != http.MethodPut {
			t.Errorf("%s %q, %v", r.Method, body, err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	task := someTask()
	task.Headers = map[string]string{"traceparent": trace, "tracestate": "a=b\r\nX-Evil: 1"}
	task.Schedule = &delaytask.ScheduledRun{
		Name: "report/daily", Tick: time.Date(2026, 5, 6, 9, 0, 0, 0, time.FixedZone("", 7200)),
	}
	client := newClient(t, func(cfg *Config) {
		cfg.Inject = func(_ context.Context, header http.Header) { header.Set("X-Injected", "yes") }
	})
	call := Call{Method: http.MethodPut, URL: server.URL, Header: http.Header{"X-Own": {"yes"}}, Body: []byte("hello")}
	answer, err := client.Deliver(t.Context(), task, call)
	if err != nil || answer != (Answer{Status: 202, Accepted: true}) {
		t.Fatalf("got %+v, %v", answer, err)
	}
	if len(call.Header) != 1 {
		t.Errorf("the caller's headers were changed: %v", call.Header)
	}
}

// No redirect is followed: each of these is one call.
func TestStatusDecides(t *testing.T) {
	t.Parallel()
	var status, calls atomic.Int32
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "canary")
	})
	client := newClient(t, func(cfg *Config) { cfg.Permanent, cfg.BreakerFailures = []int{410}, 100 })
	f := func(code int, call Call, done, permanent bool) {
		t.Helper()
		status.Store(int32(code))
		call.URL = server.URL
		before := calls.Load()
		_, err := client.Deliver(t.Context(), someTask(), call)
		if n := calls.Load() - before; n != 1 || done != (err == nil) {
			t.Errorf("%d: got %v after %d calls", code, err, n)
		}
		if done || err == nil {
			return
		}
		refusal, ok := errors.AsType[*StatusError](err)
		_, forGood := errors.AsType[*processor.PermanentError](err)
		if !ok || refusal.Status != code || forGood != permanent || strings.Contains(err.Error(), "canary") {
			t.Errorf("%d: got %v", code, err)
		}
	}
	for _, code := range []int{200, 201, 202, 204, 299} {
		f(code, Call{}, true, false)
	}
	for _, code := range []int{300, 301, 302, 303, 307, 308, 304, 400, 401, 404, 429, 500, 502, 503} {
		f(code, Call{}, false, false)
	}
	f(410, Call{}, false, true)
	f(404, Call{Statuses: []int{200, 404}}, true, false)
	f(201, Call{Statuses: []int{200, 404}}, false, false)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(status int, value, date string, want time.Duration) {
		t.Helper()
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {value}, "Date": {date}}}
		if got := retryAfter(resp, now); got != want {
			t.Errorf("%d %q: got %v, want %v", status, value, got, want)
		}
	}
	f(429, "120", "", 2*time.Minute)
	f(503, " 7 ", "", 7*time.Second)
	f(503, "86401", "", 24*time.Hour)
	f(503, strings.Repeat("9", 1000), "", 24*time.Hour)
	f(503, now.Add(time.Hour).Format(http.TimeFormat), "", time.Hour)
	f(503, now.Add(time.Hour).Format(http.TimeFormat), now.Add(time.Minute).Format(http.TimeFormat), 59*time.Minute)
	f(503, now.AddDate(9, 0, 0).Format(http.TimeFormat), "", 24*time.Hour)
	for _, nothing := range []string{"", "0", "-1", "1.5", "soon", "٣", now.Add(-time.Hour).Format(http.TimeFormat)} {
		f(429, nothing, "", 0)
	}
	f(500, "120", "", 0)
	f(301, "120", "", 0)

	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, err := newClient(t, nil).Deliver(t.Context(), someTask(), Call{URL: server.URL})
	retry, ok := errors.AsType[*processor.RetryAfterError](err)
	if _, refused := errors.AsType[*StatusError](err); !ok || !refused || retry.After != 2*time.Minute {
		t.Errorf("got %v", err)
	}
}

func TestAnswerIsShownOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "no\r\n\x1b[31m order \xff"+strings.Repeat("x", 300))
	})
	client := newClient(t, func(cfg *Config) { cfg.ShowAnswer = true })
	_, err := client.Deliver(t.Context(), someTask(), Call{URL: server.URL})
	refusal, ok := errors.AsType[*StatusError](err)
	if !ok || !strings.HasPrefix(refusal.Answer, "no [31m order xxx") || len(refusal.Answer) > 200 ||
		!strings.Contains(err.Error(), "xxx") {
		t.Errorf("got %v", err)
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	var connections, refused atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write(make([]byte, 5000))
		if r.ProtoMajor != 2 {
			t.Errorf("spoke %s, want HTTP/2", r.Proto)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := newClient(t, func(cfg *Config) {
		cfg.TLS = &tls.Config{RootCAs: roots}
	})
	inner := client.secure.DialContext
	client.secure.DialContext = func(ctx context.Context, network, address string) (netConn, error) {
		connections.Add(1)
		return inner(ctx, network, address)
	}
	for range 6 {
		_, _ = client.Deliver(t.Context(), someTask(), Call{URL: server.URL})
	}
	if connections.Load() != 1 {
		t.Errorf("%d connections for 6 calls, want 1", connections.Load())
	}
}

// A receiver closes an idle connection just when the next call is written into it.
func TestStaleConnectionSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	url := listen(t, func(conn netConn) {
		first := conns.Add(1) == 1
		for range 2 {
			if !readRequest(conn) {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			if first {
				readRequest(conn)
				return
			}
		}
	})
	client := newClient(t, nil)
	for i := range 2 {
		if _, err := client.Deliver(t.Context(), someTask(), Call{URL: url, Body: []byte("x")}); err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if conns.Load() != 2 {
		t.Errorf("%d connections, want 2", conns.Load())
	}
}

func TestCallIsRefusedBeforeItIsMade(t *testing.T) {
	t.Parallel()
	client := newClient(t, nil)
	f := func(call Call, want error) {
		t.Helper()
		if _, err := client.Deliver(t.Context(), someTask(), call); !errors.Is(err, want) ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%+v: got %v, want %v", call, err, want)
		}
	}
	f(Call{URL: "ftp://canary"}, ErrInvalidURL)
	f(Call{URL: "http://10.0.0.1/canary"}, ErrBlockedURL)
	f(Call{URL: "http://127.0.0.1/", Method: "CONNECT"}, ErrInvalidRequest)
	f(Call{URL: "http://127.0.0.1/", Method: "GET canary"}, ErrInvalidRequest)
	for name, value := range map[string]string{
		"Host": "canary", "content-length": "5", "Transfer-Encoding": "chunked", "CONNECTION": "x-canary",
		"keep-alive": "1",
		"TE":         "gzip", "Trailer": "x", "Upgrade": "h2c", "Expect": "100-continue",
		"Proxy-Authorization": "canary",
		"Webhook-Signature":   "v1,canary", "webhook-id": "1", "webhook-timestamp": "1", "delaytask-token": "1.1",
		"Delaytask-Id": "1", "X-A": "b\r\nX-Evil: canary", "X-B": "b\n", "X-C": "\x00", "X-D": "\x7f", "": "canary",
		"X canary": "b", "X:canary": "b", "X\r\ncanary": "b", "X\u00e4": "b",
		"X-Long": strings.Repeat("canary", 3000),
	} {
		f(Call{URL: "http://127.0.0.1/", Header: http.Header{name: {value}}}, ErrInvalidHeader)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Timeout: -1}, {HostRate: -1}, {MaxHosts: -1}, {Permanent: []int{200, 99}},
		{BreakerWait: -1}} {
		if _, err := New(cfg); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%+v: got %v, want ErrInvalidConfig", cfg, err)
		}
	}
	client, err := New(Config{})
	mustOK(t, err)
	if err := client.CheckURL("https://127.0.0.1/"); !errors.Is(err, ErrBlockedURL) {
		t.Errorf("a client without settings: got %v, want ErrBlockedURL", err)
	}
}

// lease counts how often its attempt has started.
type lease struct{ started atomic.Int32 }

func (*lease) CompleteTx(context.Context, delaytask.Tx) error { return nil }
func (l *lease) Started()                                     { l.started.Add(1) }

func TestAttemptStartsWhenItsRequestIsSent(t *testing.T) {
	t.Parallel()
	client := newClient(t, func(cfg *Config) { cfg.BreakerFailures, cfg.HeaderTimeout = 1, 100*time.Millisecond })
	silent := make(chan struct{})
	answers := serve(t, func(http.ResponseWriter, *http.Request) {})
	hangs := serve(t, func(http.ResponseWriter, *http.Request) { <-silent })
	defer close(silent)
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct {
		name, url string
		starts    bool
	}{
		{"it is answered", answers.URL, true},
		{"it is not answered", hangs.URL, true},
		{"its host is left alone", hangs.URL, false},
		{"it finds no server", gone.URL, false},
		{"it may not be made", "http://10.0.0.1/", false},
	} {
		l := new(lease)
		_, err := client.Deliver(processor.WithLease(t.Context(), l), someTask(), Call{URL: tt.url, Body: []byte("x")})
		if started := l.started.Load() > 0; started != tt.starts {
			t.Errorf("%s: started %v, %v", tt.name, started, err)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient makes a client that may call servers of the test.
func newClient(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	guard, err := NewGuard(GuardConfig{AllowLoopback: true})
	mustOK(t, err)
	cfg := Config{Guard: guard, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	client, err := New(cfg)
	mustOK(t, err)
	t.Cleanup(client.Close)
	return client
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func someTask() *delaytask.Task {
	return &delaytask.Task{ID: 42, Tag: "order.close", Attempt: 3, Crashes: 2, Version: 7,
		Expected: time.Date(2026, 5, 6, 7, 8, 9, 120_000_000, time.UTC)}
}

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
