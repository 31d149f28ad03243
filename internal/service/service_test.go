package service

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/config"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

// running is a service that runs until its test ends.
type running struct {
	*Service
	logged *logs
	stop   func() error
}

// logs collects what a service logs.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func settings(dsn string) config.Config {
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = dsn, true, "127.0.0.1:0"
	return c
}

func serve(t *testing.T, c config.Config) running {
	t.Helper()
	return serveWith(t, c, func(*Service) {})
}

// serveWith changes the service before it runs.
func serveWith(t *testing.T, c config.Config, change func(*Service)) running {
	t.Helper()
	logged := &logs{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	return running{s, logged, stop}
}

func sqlite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "tasks.db") }

// call sends JSON and reads JSON. The answer's status is returned, and the text of a body that does not fit.
func (r running) call(t *testing.T, method, path, body string, answer any) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer != nil && len(text) > 0 {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, path, text, err)
		}
	}
	return res.StatusCode, string(text)
}

func TestATaskIsSavedPulledAndFinished(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := serve(t, settings(db.DSN))
		var saved wire.Saved
		if status, text := r.call(t, "POST", "/v1/tasks", `{"tag":"t","body":{"n":1},"delay":"100ms","key":"k"}`, &saved); status != 201 {
			t.Fatal(status, text)
		}
		var again wire.Saved
		if status, text := r.call(t, "POST", "/v1/tasks", `{"tag":"t","key":"k"}`, &again); status != 200 || !again.Duplicate || again.ID != saved.ID {
			t.Fatal(status, text)
		}
		var popped wire.PopReply
		if status, text := r.call(t, "POST", "/v1/tags/t/pop?wait=30s&max=5", "", &popped); status != 200 || len(popped.Tasks) != 1 {
			t.Fatal(status, text)
		}
		task := popped.Tasks[0]
		if task.ID != saved.ID || string(task.Body.Body) != `{"n":1}` || task.Due.Std().Before(saved.Expected.Std()) {
			t.Errorf("popped %+v of %+v", task, saved)
		}
		finish := `{"token":"` + task.Token + `"}`
		if status, text := r.call(t, "POST", "/v1/tasks/"+task.ID.String()+"/finish", finish, nil); status != 204 {
			t.Error(status, text)
		}
		var problem wire.Problem
		if status, text := r.call(t, "POST", "/v1/tasks/"+task.ID.String()+"/finish", finish, &problem); status != 409 ||
			problem.Code != wire.CodeLeaseLost {
			t.Error(status, text)
		}
		var done wire.Task
		if r.call(t, "GET", "/v1/tasks/"+task.ID.String(), "", &done); done.Status != "completed" || done.Attempt != 1 {
			t.Errorf("got %+v", done)
		}
	})
}

func TestStopAnswersThoseWhoWait(t *testing.T) {
	r := serve(t, settings(sqlite(t)))
	answered := make(chan int, 1)
	go func() {
		res, err := http.Post(r.URL()+"/v1/tags/t/pop?wait=50s", "", nil)
		if err != nil {
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	awaitServed(t, r, "t")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusNoContent {
		t.Errorf("the pop that waited was answered %d", status)
	}
}

// awaitServed waits until a pop of the tag has arrived.
func awaitServed(t *testing.T, r running, tag string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var nodes wire.NodeList
		r.call(t, "GET", "/v1/nodes", "", &nodes)
		for _, n := range nodes.Nodes {
			for _, served := range n.Tags {
				if served == tag {
					return
				}
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody serves %s: %+v", tag, nodes)
		}
	}
}

func TestARegisteredWorkerIsCalled(t *testing.T) {
	c := settings(sqlite(t))
	c.Secret = "a secret of the test, long enough"
	r := serve(t, c)
	called := make(chan http.Header, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { called <- req.Header.Clone() }))
	defer receiver.Close()
	register := `{"app":"shop","address":"` + receiver.URL + `/hook","tags":["order.close"],
		"secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`
	if status, text := r.call(t, "POST", "/v1/workers", register, nil); status != 201 {
		t.Fatal(status, text)
	}
	var saved wire.Saved
	if status, text := r.call(t, "POST", "/v1/tasks", `{"tag":"order.close","app":"shop","body":{"n":1},"delay":"50ms"}`, &saved); status != 201 {
		t.Fatal(status, text)
	}
	header := <-called
	if header.Get("Webhook-Id") != saved.ID.String() || header.Get("Webhook-Signature") == "" || header.Get("Delaytask-Tag") != "order.close" {
		t.Errorf("called with %v", header)
	}
	if saved.App != "shop" || len(saved.Headers) != 0 {
		t.Errorf("saved %+v", saved)
	}
}

func TestBeyondLoopbackTokensAreAskedFor(t *testing.T) {
	f := func(change func(*config.Server), want string) {
		t.Helper()
		c := settings(sqlite(t))
		c.Server.Listen = "0.0.0.0:0"
		change(&c.Server)
		s, err := Open(t.Context(), c, slog.New(slog.DiscardHandler))
		if err == nil {
			err = s.close(context.Background())
			if err != nil || want != "" {
				t.Errorf("%+v was opened, %v", c.Server, err)
			}
			return
		}
		if want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c.Server, err, want)
		}
	}
	f(func(*config.Server) {}, "--verbs all --dsn sqlite:") // the default, which it wants named
	f(func(s *config.Server) { s.Auth = "none" }, "--insecure")
	f(func(s *config.Server) { s.Auth = "token" }, "delaytask token create")
	f(func(s *config.Server) { s.Insecure = true }, "")
	f(func(s *config.Server) { s.Auth, s.Insecure = "none", true }, "")
	f(func(s *config.Server) { s.Listen, s.Auth = "127.0.0.1:0", "none" }, "")
	for _, loopback := range []string{"localhost:0", "[::1]:0"} {
		l, err := net.Listen("tcp", loopback)
		if err != nil {
			t.Logf("this machine has no such address: %v", err)
			continue
		}
		_ = l.Close()
		f(func(s *config.Server) { s.Listen = loopback }, "")
	}
}
