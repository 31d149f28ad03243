package push

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/sealed"
	"github.com/delaytask/delaytask/internal/seam"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// patience is how long a test waits for what must happen in the end, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// fixture is a process of the service: a scheduler and a registry on a database, and all that they log.
type fixture struct {
	*delaytask.Scheduler
	registry *Registry
	db       *sql.DB
	logged   *logged
}

func each(t *testing.T, f func(t *testing.T, d dbtest.Database)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		f(t, d)
	})
}

// start runs a process until the test ends. It is quick where a test would only wait.
func start(t *testing.T, d dbtest.Database, change ...func(*Config)) fixture {
	t.Helper()
	f := fixture{logged: &logged{}}
	log := slog.New(slog.NewTextHandler(f.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pool, _, err := store.Connect(t.Context(), d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	f.db = pool.DB
	f.Scheduler, err = delaytask.Open(t.Context(), d.DSN,
		delaytask.Config{Migrate: true, Backoff: processor.Constant(0), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c := Config{
		Store: seam.Store(f.Scheduler).(Store), Scheduler: f.Scheduler, Client: newClient(t, log),
		Secrets: newBox(t, "0123456789abcdef"), Log: log, Reserved: []string{"http"},
		Every: 20 * time.Millisecond, Grace: 100 * time.Millisecond,
	}
	for _, change := range change {
		change(&c)
	}
	if f.registry, err = New(c); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.registry.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return f
}

func newClient(t *testing.T, log *slog.Logger) *webhook.Client {
	t.Helper()
	guard, err := webhook.NewGuard(webhook.GuardConfig{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := webhook.New(webhook.Config{Guard: guard, Log: log, Permanent: []int{410}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func newBox(t *testing.T, secret string) *sealed.Box {
	t.Helper()
	box, err := sealed.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// listen serves a receiver until the test ends.
func listen(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// answer is a receiver that says the same to everybody, and where it was called.
func answer(t *testing.T, status int, called chan<- *http.Request) string {
	t.Helper()
	return listen(t, func(w http.ResponseWriter, r *http.Request) {
		if called != nil {
			called <- r
		}
		w.WriteHeader(status)
	})
}

// dead is an address that refuses connections.
func dead(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func (f fixture) register(t *testing.T, app, address string, tags ...string) wire.Worker {
	t.Helper()
	return f.sign(t, app, address, "", tags...)
}

// sign registers a worker and waits until it can be called.
func (f fixture) sign(t *testing.T, app, address, secret string, tags ...string) wire.Worker {
	t.Helper()
	w, err := f.registry.Register(t.Context(), &wire.Register{App: app, Address: address, Tags: tags, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	f.awaitReceiver(t, tags[0], app, address)
	return w
}

func (f fixture) awaitReceiver(t *testing.T, tag, app, address string) {
	t.Helper()
	eventually(t, app+" is called at "+address, func() bool {
		found := f.registry.directory.Load().find(tag, app)
		return slices.ContainsFunc(found, func(to *receiver) bool { return to.Address == address })
	})
}

func (f fixture) save(t *testing.T, tag string, body any, options ...delaytask.Option) int64 {
	t.Helper()
	id, err := f.SaveDelayTask(t.Context(), tag, body, 0, options...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func forApp(app string) delaytask.Option { return delaytask.WithApp(app) }

func (f fixture) get(t *testing.T, id int64) delaytask.Task {
	t.Helper()
	task, err := f.Get(t.Context(), delaytask.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// awaitStatus waits until the task has the status, and returns it.
func (f fixture) awaitStatus(t *testing.T, id int64, want delaytask.Status) (task delaytask.Task) {
	t.Helper()
	eventually(t, "the task is "+string(want), func() bool {
		task = f.get(t, id)
		return task.Status == want
	})
	return task
}

func (f fixture) awaitServed(t *testing.T, tag string, want bool) {
	t.Helper()
	eventually(t, "the tag "+tag+" is served or not", func() bool {
		nodes, err := f.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return want == slices.ContainsFunc(nodes, func(n delaytask.Node) bool { return slices.Contains(n.Tags, tag) })
	})
}

func (f fixture) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := f.db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	given := time.After(patience)
	for !holds() {
		select {
		case <-given:
			t.Fatalf("after %v not yet: %s", patience, what)
		case <-poll.C:
		}
	}
}

func receive[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("after %v not yet: %s", patience, what)
	}
	return v
}

// wantProblem is for what a caller of the API is told.
func wantProblem(t *testing.T, err error, status int, code string) {
	t.Helper()
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok || p.Status != status || p.Code != code || p.Detail == "" || p.Title != http.StatusText(status) {
		t.Errorf("got %+v (%v), want %d %s", p, err, status, code)
	}
}

// logged is what was logged so far.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}
