package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/push"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/seam"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// site is the API over a scheduler that runs on a database of its own.
type site struct {
	t         testing.TB
	dsn       string
	api       *API
	scheduler *delaytask.Scheduler
	store     *store.Store
	logged    *logs
	stop      context.CancelFunc // as a service that is asked to stop
}

// logs collects what is logged.
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

const testBodyLimit = 64 << 10

// patient lets requests wait for a machine that is too busy to save a large batch in the usual time.
func patient(c *Config) { c.RequestWait = 2 * time.Minute }

func newSite(t testing.TB, change ...func(*Config)) *site {
	t.Helper()
	s := &site{t: t, dsn: dbtest.New(t, dbtest.SQLite).DSN, logged: &logs{}}
	log := slog.New(slog.NewTextHandler(s.logged, nil))
	scheduler, err := delaytask.Open(t.Context(), s.dsn, delaytask.Config{Migrate: true, Logger: slog.New(slog.DiscardHandler), BodyLimit: testBodyLimit})
	if err != nil {
		t.Fatal(err)
	}
	s.scheduler, s.store = scheduler, seam.Store(scheduler).(*store.Store)
	t.Cleanup(func() {
		if err := scheduler.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	if err := scheduler.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopping, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	s.stop = stop
	c := Config{
		Scheduler: scheduler, Log: log, BodyLimit: testBodyLimit, Stopping: stopping, Requests: s.store, Workers: s.registry(t),
	}
	for _, f := range change {
		f(&c)
	}
	if s.api, err = New(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// registry holds workers that nobody calls: what it stores is what matters here.
func (s *site) registry(t testing.TB) *push.Registry {
	t.Helper()
	guard, err := webhook.NewGuard(webhook.GuardConfig{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := webhook.New(webhook.Config{Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	registry, err := push.New(push.Config{
		Store: s.store, Scheduler: s.scheduler, Client: client, Log: slog.New(slog.DiscardHandler), Reserved: []string{access.HTTPTag},
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// reply is an answer, and the problem that it is when it is one.
type reply struct {
	status int
	header http.Header
	text   string
	wire.Problem
}

// send sends a request with headers in pairs. A body is JSON unless they say otherwise.
func (s *site) send(method, target, body string, header ...string) reply {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, reader)
	r.Host = "localhost"
	if body != "" {
		r.Header.Set("Content-Type", mediaJSON)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	return s.serve(r)
}

func (s *site) serve(r *http.Request) reply {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	got := reply{status: w.Code, header: w.Header(), text: w.Body.String()}
	if w.Code >= 400 {
		if media := w.Header().Get("Content-Type"); media != "application/problem+json" {
			s.t.Errorf("%s %.80s: %d comes as %q", r.Method, r.URL, w.Code, media)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got.Problem); err != nil || got.Code == "" || got.Detail == "" ||
			got.Status != w.Code || got.Title == "" {
			s.t.Errorf("%s %.80s: %d without a whole problem: %.300s (%v)", r.Method, r.URL, w.Code, got.text, err)
		}
	}
	return got
}

// ok sends a request that must be served, and reads its answer.
func ok[T any](s *site, want int, method, target, body string, header ...string) (answer T) {
	s.t.Helper()
	got := s.send(method, target, body, header...)
	if got.status != want {
		s.t.Fatalf("%s %.80s %.80s: %d %.400s, want %d", method, target, body, got.status, got.text, want)
	}
	if got.text != "" {
		if err := json.Unmarshal([]byte(got.text), &answer); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, target, err, got.text)
		}
	}
	return answer
}

// done sends a request whose answer has no body.
func (s *site) done(method, target, body string, header ...string) {
	s.t.Helper()
	if got := s.send(method, target, body, header...); got.status != http.StatusNoContent || got.text != "" {
		s.t.Fatalf("%s %s %s: %d %s, want 204", method, target, body, got.status, got.text)
	}
}

// refuses sends a request that must be refused in this way.
func (s *site) refuses(status int, code, method, target, body string, header ...string) wire.Problem {
	s.t.Helper()
	got := s.send(method, target, body, header...)
	if got.status != status || got.Code != code {
		s.t.Errorf("%s %.120s %.120s: %d %.400s, want %d %s", method, target, body, got.status, got.text, status, code)
	}
	return got.Problem
}

func (s *site) save(body string) wire.Saved {
	s.t.Helper()
	return ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", body)
}

// popOne takes the task of a tag that is due.
func (s *site) popOne(tag, more string) wire.Popped {
	s.t.Helper()
	popped := ok[wire.PopReply](s, http.StatusOK, "POST", "/v1/tags/"+tag+"/pop?wait=20s"+more, "")
	if len(popped.Tasks) != 1 {
		s.t.Fatalf("popped %d tasks", len(popped.Tasks))
	}
	return popped.Tasks[0]
}

func (s *site) get(id wire.ID) wire.Task {
	s.t.Helper()
	return ok[wire.Task](s, http.StatusOK, "GET", "/v1/tasks/"+id.String(), "")
}

// count is how many tasks are stored.
func (s *site) count() (n int64) {
	s.t.Helper()
	stats, err := s.scheduler.Stats(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, tag := range stats {
		for _, tasks := range tag.Counts {
			n += tasks
		}
	}
	return n
}

// token makes a bearer token, and returns the header that sends it.
func (s *site) token(name string, tags []string, verbs ...access.Verb) []string {
	s.t.Helper()
	secret, stored, err := access.New(name, tags, verbs, *new(row.Time))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.CreateToken(s.t.Context(), stored); err != nil {
		s.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + secret}
}

// stored is the body of a task as its row has it.
func (s *site) stored(id wire.ID) string {
	s.t.Helper()
	task, err := s.scheduler.Get(s.t.Context(), delaytask.ID(int64(id)))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(task.Body)
}

// freshID is one that no task has.
func (s *site) freshID() wire.ID { return wire.ID(delaytask.NewID()) }

// newGuarded is a site that asks for tokens.
func newGuarded(t testing.TB) *site {
	t.Helper()
	return newSite(t, func(c *Config) { c.Tokens = access.NewTokens(c.Requests.(*store.Store)) })
}

func newRequest(t testing.TB, method, target, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", mediaJSON)
	return r
}
