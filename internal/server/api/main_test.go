package api

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/push"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/webhooktest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// site is the API over a scheduler on a database of its own.
type site struct {
	servertest.Client
	dsn       string
	api       *API
	scheduler *scheduler.Scheduler
	store     *sqlstore.Store
	logged    *servertest.Log
}

const testBodyLimit = 64 << 10

// guarded requires tokens.
func guarded(c *Config) { c.Tokens = access.NewTokens(c.Requests.(*sqlstore.Store)) }

func newSite(t testing.TB, change ...func(*Config)) *site {
	t.Helper()
	s := &site{dsn: dbtest.New(t, dbtest.SQLite).DSN, logged: &servertest.Log{}}
	s.scheduler = servertest.Open(t, s.dsn, scheduler.Config{BodyLimit: testBodyLimit})
	servertest.OK(t, s.scheduler.Start(t.Context()))
	s.store = core.Of(s.scheduler).Store().(*sqlstore.Store)
	receivers, err := push.New(push.Config{ // never called: only what is stored matters here
		Store: s.store, Scheduler: s.scheduler, Client: webhooktest.New(t, webhook.Config{}),
		Log: slog.New(slog.DiscardHandler), Reserved: []string{access.HTTPTag},
	})
	servertest.OK(t, err)
	stopping, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	c := Config{
		Scheduler: s.scheduler, Log: slog.New(slog.NewTextHandler(s.logged, nil)), BodyLimit: testBodyLimit,
		Stopping: stopping, Requests: s.store, Receivers: receivers, Redactor: new(redact.Redactor),
		Audit: audit.New(audit.Config{Store: s.store, Log: slog.New(slog.DiscardHandler)}),
	}
	for _, f := range change {
		f(&c)
	}
	s.api, err = New(c)
	servertest.OK(t, err)
	s.Client = servertest.Inside(t, s.api)
	return s
}

// ok sends a request that must be served, and reads its answer.
func ok[T any](s *site, status int, method, path, body string, header ...string) T {
	s.TB.Helper()
	return servertest.Ask[T](&s.Client, status, method, path, body, header...)
}

// count is how many tasks are stored.
func (s *site) count() (n int64) {
	s.TB.Helper()
	stats, err := s.scheduler.Stats(s.TB.Context())
	servertest.OK(s.TB, err)
	for _, tag := range stats {
		for _, tasks := range tag.Counts {
			n += tasks
		}
	}
	return n
}

// token makes a bearer token for comma-separated tags, and returns the header that sends it.
func (s *site) token(name, tags string, verbs ...access.Verb) []string {
	s.TB.Helper()
	secret, token, err := access.New(name, strings.Split(tags, ","), verbs, *new(row.Time))
	if err == nil {
		_, err = s.store.CreateToken(s.TB.Context(), token)
	}
	servertest.OK(s.TB, err)
	return []string{"Authorization", "Bearer " + secret}
}

// stored is the body of a task as its row has it.
func (s *site) stored(id wire.ID) string {
	s.TB.Helper()
	task, err := s.scheduler.Get(s.TB.Context(), delaytask.ID(int64(id)))
	servertest.OK(s.TB, err)
	return string(task.Body)
}
