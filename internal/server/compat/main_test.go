package compat

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// queue is the routes of a scheduler, and their client.
type queue struct {
	servertest.Client
	handler   http.Handler
	scheduler *scheduler.Scheduler
	caller    access.Caller // set before a request is sent, as is
	patience  time.Duration // of the requests' contexts
}

// each runs f with a queue on each kind of database.
func each(t *testing.T, f func(t *testing.T, q *queue)) {
	t.Helper()
	servertest.Each(t, func(t *testing.T, db dbtest.Database) { f(t, serve(t, db.DSN)) })
}

// onSQLite is for tests that do not depend on the database.
func onSQLite(t *testing.T, change ...func(*Config)) *queue {
	t.Helper()
	t.Parallel()
	return serve(t, dbtest.New(t, dbtest.SQLite).DSN, change...)
}

func serve(t *testing.T, dsn string, change ...func(*Config)) *queue {
	t.Helper()
	q := stopped(t, dsn, change...)
	servertest.OK(t, q.scheduler.Start(t.Context()))
	return q
}

// stopped is a queue whose scheduler has not started.
func stopped(t *testing.T, dsn string, change ...func(*Config)) *queue {
	t.Helper()
	q := &queue{scheduler: servertest.Open(t, dsn, scheduler.Config{}), caller: access.Everyone(), patience: time.Hour}
	c := Config{Scheduler: q.scheduler, Log: slog.New(slog.DiscardHandler), Stopping: t.Context()}
	for _, f := range change {
		f(&c)
	}
	h, err := New(c)
	servertest.OK(t, err)
	q.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), q.patience)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(access.WithCaller(ctx, q.caller)))
	})
	q.Client = servertest.Inside(t, q.handler)
	return q
}

func (q *queue) ask(method, path, body string) (a answer) {
	q.TB.Helper()
	got := q.Call(method, path, body)
	if got.Status != http.StatusOK {
		q.TB.Fatalf("%s %s: status %d: %s", method, path, got.Status, got.Text)
	}
	if err := json.Unmarshal([]byte(got.Text), &a); err != nil || a.Success != (a.Error == "") {
		q.TB.Fatalf("%s %s: %v in %s, want a success or an error", method, path, err, got.Text)
	}
	return a
}

// The calls that the clients make: of one protocol by its commands, of the other by its paths.

func (q *queue) command(body string) answer {
	q.TB.Helper()
	return q.ask(http.MethodPost, "/compat/topics", body)
}

func (q *queue) add(body string) answer { q.TB.Helper(); return q.ask(http.MethodPost, "/o/add", body) }

func (q *queue) get(topic, more string) answer {
	q.TB.Helper()
	return q.ask(http.MethodGet, "/o/get?topic="+url.QueryEscape(topic)+more, "")
}

func (q *queue) complete(topic, id string) answer {
	q.TB.Helper()
	return q.ask(http.MethodGet, "/o/complete?topic="+url.QueryEscape(topic)+"&id="+url.QueryEscape(id), "")
}

// ok fails the test when a call was refused.
func (q *queue) ok(a answer) answer {
	q.TB.Helper()
	if !a.Success {
		q.TB.Fatalf("refused: %s", a.Error)
	}
	return a
}

// refused fails the test unless the call was refused with a text that contains why.
func (q *queue) refused(a answer, why string) {
	q.TB.Helper()
	if a.Success || !strings.Contains(a.Error, why) {
		q.TB.Errorf("got %+v, want an error that holds %q", a, why)
	}
}

func (q *queue) is(a answer, id, value string) {
	q.TB.Helper()
	if !a.Success || a.ID != id || a.Value != value {
		q.TB.Fatalf("got %+v, want id %q and value %q", a, id, value)
	}
}

// task is the unfinished task with the key; with a global key any tag will do.
func (q *queue) task(tag, key string) delaytask.TaskRow {
	q.TB.Helper()
	return q.show(delaytask.Key(tag, key))
}

func (q *queue) byID(id int64) delaytask.TaskRow {
	q.TB.Helper()
	return q.show(delaytask.ID(id))
}

func (q *queue) show(ref delaytask.Ref) delaytask.TaskRow {
	q.TB.Helper()
	task, err := q.scheduler.Get(q.TB.Context(), ref)
	servertest.OK(q.TB, err)
	return task
}
