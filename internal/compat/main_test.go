package compat

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// queue is a server with the routes, on a scheduler that runs.
type queue struct {
	t         *testing.T
	scheduler *delaytask.Scheduler
	server    *httptest.Server
	client    *http.Client
	stopping  context.CancelFunc
	caller    access.Caller // set before a request is sent, as is
	patience  time.Duration // of the requests' contexts
}

// each runs f with a queue on every kind of database.
func each(t *testing.T, f func(t *testing.T, q *queue)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		t.Parallel()
		f(t, serve(t, db.DSN))
	})
}

// onSQLite is for tests that another database makes no better.
func onSQLite(t *testing.T, change ...func(*Config)) *queue {
	t.Helper()
	t.Parallel()
	return serve(t, dbtest.New(t, dbtest.SQLite).DSN, change...)
}

func open(t *testing.T, dsn string) *delaytask.Scheduler {
	t.Helper()
	s, err := delaytask.Open(t.Context(), dsn, delaytask.Config{Migrate: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *delaytask.Scheduler) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func serve(t *testing.T, dsn string, change ...func(*Config)) *queue {
	t.Helper()
	s := open(t, dsn)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return listen(t, s, change...)
}

// listen serves the routes of a scheduler, started or not.
func listen(t *testing.T, s *delaytask.Scheduler, change ...func(*Config)) *queue {
	t.Helper()
	stopping, cancel := context.WithCancel(context.Background())
	c := Config{Scheduler: s, Log: slog.New(slog.DiscardHandler), Stopping: stopping}
	for _, f := range change {
		f(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{t: t, scheduler: s, stopping: cancel, caller: access.Everyone(), patience: time.Hour}
	q.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), q.patience)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(access.WithCaller(ctx, q.caller)))
	}))
	q.client = q.server.Client()
	t.Cleanup(q.server.Close)
	t.Cleanup(cancel)
	return q
}

// send returns the status and the body of what the server answers.
func (q *queue) send(method, path, body string, header ...string) (int, string) {
	q.t.Helper()
	req, err := http.NewRequestWithContext(q.t.Context(), method, q.server.URL+path, strings.NewReader(body))
	if err != nil {
		q.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := q.client.Do(req)
	if err != nil {
		q.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		q.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (q *queue) ask(method, path, body string) answer {
	q.t.Helper()
	status, text := q.send(method, path, body)
	if status != http.StatusOK {
		q.t.Fatalf("%s %s: status %d: %s", method, path, status, text)
	}
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		q.t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	if a.Success != (a.Error == "") {
		q.t.Errorf("%s %s: success and error contradict each other: %s", method, path, text)
	}
	return a
}

// The calls that the clients make: of one protocol by its commands, of the other by its paths.

func (q *queue) command(body string) answer {
	q.t.Helper()
	return q.ask(http.MethodPost, "/compat/topics", body)
}

func (q *queue) add(body string) answer { q.t.Helper(); return q.ask(http.MethodPost, "/o/add", body) }

func (q *queue) get(topic, more string) answer {
	q.t.Helper()
	return q.ask(http.MethodGet, "/o/get?topic="+url.QueryEscape(topic)+more, "")
}

func (q *queue) complete(topic, id string) answer {
	q.t.Helper()
	return q.ask(http.MethodGet, "/o/complete?topic="+url.QueryEscape(topic)+"&id="+url.QueryEscape(id), "")
}

// ok fails the test when a call was refused.
func (q *queue) ok(a answer) answer {
	q.t.Helper()
	if !a.Success {
		q.t.Fatalf("refused: %s", a.Error)
	}
	return a
}

// refused fails the test unless the call was refused with a text that holds why.
func (q *queue) refused(a answer, why string) {
	q.t.Helper()
	if a.Success || !strings.Contains(a.Error, why) {
		q.t.Errorf("got %+v, want an error that holds %q", a, why)
	}
}

func (q *queue) is(a answer, id, value string) {
	q.t.Helper()
	if !a.Success || a.ID != id || a.Value != value {
		q.t.Fatalf("got %+v, want id %q and value %q", a, id, value)
	}
}

// task is the unfinished task with the key; the tag of a global key is of no account.
func (q *queue) task(tag, key string) delaytask.Task {
	q.t.Helper()
	task, err := q.scheduler.Get(q.t.Context(), delaytask.Key(tag, key))
	if err != nil {
		q.t.Fatal(err)
	}
	return task
}

func (q *queue) byID(id int64) delaytask.Task {
	q.t.Helper()
	task, err := q.scheduler.Get(q.t.Context(), delaytask.ID(id))
	if err != nil {
		q.t.Fatal(err)
	}
	return task
}
