package push

import (
	"context"
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
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/server/encrypted"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/webhooktest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// fixture is a process of the service: a scheduler and a registry on a database, and their log.
type fixture struct {
	*scheduler.Scheduler
	t        *testing.T
	registry *Registry
	logged   *servertest.Log
}

// start runs a process until the test ends. Its intervals are short.
func start(t *testing.T, d dbtest.Database, change ...func(*Config)) fixture {
	t.Helper()
	f := fixture{t: t, logged: &servertest.Log{}}
	log := slog.New(slog.NewTextHandler(f.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.Scheduler = servertest.Open(t, d.DSN, scheduler.Config{Backoff: processor.Constant(0), Logger: log})
	c := Config{
		Store: core.Of(f.Scheduler).Store().(Store), Scheduler: f.Scheduler, Client: newClient(t, log),
		Secrets: newBox(t, "0123456789abcdef"), Log: log, Reserved: []string{"http"},
		Every: 20 * time.Millisecond, Grace: 100 * time.Millisecond,
	}
	for _, change := range change {
		change(&c)
	}
	var err error
	f.registry, err = New(c)
	servertest.OK(t, err)
	servertest.OK(t, f.Start(t.Context()))
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
	return webhooktest.New(t, webhook.Config{Log: log, Permanent: []int{410}})
}

func newBox(t *testing.T, secret string) *encrypted.Box {
	t.Helper()
	box, err := encrypted.New(secret)
	servertest.OK(t, err)
	return box
}

// answer is a receiver that gives the same answer to every call, and reports where it was called.
func answer(t *testing.T, status int, called chan<- *http.Request) string {
	t.Helper()
	return servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
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

func (f fixture) register(app, address string, tags ...string) wire.Receiver {
	f.t.Helper()
	return f.sign(app, address, "", tags...)
}

// sign registers a receiver and waits until it can be called.
func (f fixture) sign(app, address, secret string, tags ...string) wire.Receiver {
	f.t.Helper()
	w, err := f.registry.Register(f.t.Context(), &wire.Register{App: app, Address: address, Tags: tags, Secret: secret})
	servertest.OK(f.t, err)
	servertest.Eventually(f.t, app+" is called at "+address, func() bool {
		found := f.registry.directory.Load().find(tags[0], app)
		return slices.ContainsFunc(found, func(to *target) bool { return to.Address == address })
	})
	return w
}

func (f fixture) save(tag string, body any, options ...delaytask.Option) int64 {
	f.t.Helper()
	id, err := f.SaveDelayTask(f.t.Context(), tag, body, 0, options...)
	servertest.OK(f.t, err)
	return id
}

func (f fixture) get(id int64) delaytask.TaskRow {
	f.t.Helper()
	task, err := f.Get(f.t.Context(), delaytask.ID(id))
	servertest.OK(f.t, err)
	return task
}

// awaitStatus waits until the task has the status, and returns it.
func (f fixture) awaitStatus(id int64, want delaytask.Status) (task delaytask.TaskRow) {
	f.t.Helper()
	servertest.Eventually(f.t, "the task is "+string(want), func() bool {
		task = f.get(id)
		return task.Status == want
	})
	return task
}

func (f fixture) awaitServed(tag string, want bool) {
	f.t.Helper()
	servertest.Eventually(f.t, "the tag "+tag+" is served or not", func() bool {
		nodes, err := f.Nodes(f.t.Context())
		servertest.OK(f.t, err)
		return want == slices.ContainsFunc(nodes, func(n report.Node) bool { return slices.Contains(n.Tags, tag) })
	})
}

// count is how often the text was logged.
func (f fixture) count(text string) int { return strings.Count(f.logged.String(), text) }

// wantProblem checks the problem that a caller of the API gets.
func wantProblem(t *testing.T, err error, status int, code string) {
	t.Helper()
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok || p.Status != status || p.Code != code || p.Detail == "" || p.Title != http.StatusText(status) {
		t.Errorf("got %+v (%v), want %d %s", p, err, status, code)
	}
}
