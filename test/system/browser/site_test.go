package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

// site is a dashboard that listens, and its scheduler.
type site struct {
	*scheduler.Scheduler
	pages  http.Handler
	url    string // with a slash at its end
	ids    map[string]int64
	runs   map[string]string // bulk changes
	mended atomic.Bool       // what makes tasks fail
}

// serve opens a database, a new file by default, and serves its dashboard to an admin.
func serve(t *testing.T, dsn string, cfg scheduler.Config) *site {
	t.Helper()
	if dsn == "" {
		dsn = "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	}
	cfg.Logger, cfg.StopGrace, cfg.Migrate = quiet, -1, true
	cfg.MaxAttempts, cfg.Backoff = 3, processor.Constant(time.Millisecond)
	scheduler, err := scheduler.Open(t.Context(), dsn, cfg)
	servertest.OK(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = scheduler.Stop(ctx) // where the database is away, it says so
	})
	s := &site{Scheduler: scheduler, ids: map[string]int64{}, runs: map[string]string{}}
	return s.as(t, dashboard.Options{Who: is("shop-ops", dashboard.Admin, "*")})
}

// is says that the same person sends every request.
func is(name string, role dashboard.Role, tags ...string) func(*http.Request) (dashboard.User, error) {
	return func(*http.Request) (dashboard.User, error) {
		return dashboard.User{Name: name, Role: role, Tags: tags}, nil
	}
}

// as serves the same scheduler by another dashboard.
func (s *site) as(t *testing.T, o dashboard.Options) *site {
	t.Helper()
	o.Log = quiet
	pages, err := dashboard.New(s.Scheduler, o)
	servertest.OK(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return &site{Scheduler: s.Scheduler, pages: pages, url: server.URL + "/", ids: s.ids, runs: s.runs}
}

// run does as the body of a task says. A failure says the same in lines; lists show the first one.
func (s *site) run(ctx context.Context, task *delaytask.Task) error {
	switch body := string(task.Body); {
	case strings.HasPrefix(body, "fail ") && !s.mended.Load():
		return errors.New(body[5:] + "\n\tat mail.go:17\n\tat main.go:4")
	case body == "wait":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// save saves a task under a name, for paths.
func (s *site) save(t *testing.T, name, tag, body string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := s.SaveDelayTask(t.Context(), tag, body, delay, opts...)
	servertest.OK(t, err)
	s.ids[name] = id
	return id
}

// full serves a scheduler with something for every page: tasks in every status, of tags that are served, paused,
// failing and forsaken, an hour of history, a schedule and a receiver.
func full(t *testing.T, dsn string) *site {
	t.Helper()
	s, ctx := serve(t, dsn, scheduler.Config{NodeName: "shop-1"}), t.Context()
	for _, tag := range []string{"mail.send", "order.close", "report/daily", "export"} {
		servertest.OK(t, s.Register(tag, processor.Func(s.run)))
	}
	_, err := s.SaveSchedule(ctx, "nightly", delaytask.Cron("30 2 * * *", "Europe/Berlin"), "report/daily", "ok")
	servertest.OK(t, err)
	_, err = s.SaveSchedule(ctx, "hourly", delaytask.Every(time.Hour), "order.close", "ok")
	servertest.OK(t, err)
	_, err = s.SaveSchedule(ctx, "weekly", delaytask.Cron("0 6 * * 1", "UTC"), "report/daily", "ok")
	servertest.OK(t, err)
	servertest.OK(t, s.PauseSchedule(ctx, "weekly", delaytask.Reason("the printer is being repaired")))
	servertest.OK(t, s.Pause(ctx, "export"))
	stored := core.Of(s.Scheduler).Store().(*sqlstore.Store)
	receiver, err := stored.SaveReceiver(ctx, row.Receiver{App: "shop", Tags: []string{"order.close"}, TTL: time.Hour,
		Address: "https://shop.example/hook"})
	servertest.OK(t, err)
	s.ids["receiver"] = receiver.ID
	receiver, err = stored.SaveReceiver(ctx, row.Receiver{App: "stock", TTL: time.Millisecond,
		Tags:    []string{"stock.count", "stock.move", "order.open", "order.close", "order.send", "report/daily"},
		Address: "https://stock.example/" + strings.Repeat("a-long-path/", 20) + "?token=4711"})
	servertest.OK(t, err)
	s.ids["expired"] = receiver.ID
	servertest.OK(t, s.Start(ctx))
	var history []row.Rollup
	for i := range 60 {
		begin := row.At(s.Now().Add(-time.Duration(i+1) * time.Minute).Truncate(time.Minute))
		for _, tag := range []string{row.EveryTag, "order.close"} {
			history = append(history, row.Rollup{
				Span: row.SpanMinute, Begin: begin, Tag: tag, Node: "shop-0", Completed: int64(90 + i%7),
				Late: row.Histogram{{Class: 30 + i%9, N: 90}, {Class: 60, N: 3}}, Max: time.Second,
			})
		}
	}
	servertest.OK(t, stored.PutRollups(ctx, history))
	trace := delaytask.WithHeader("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	for range 3 {
		s.save(t, "failed", "mail.send", "fail dial tcp 10.0.0.7:25: connection refused", 0, trace)
		s.save(t, "completed", "order.close", "ok", 0)
		s.save(t, "paused", "export", "ok", 0)
		s.save(t, "unserved", "stock.count", "ok", 0)
		s.save(t, "soon", "order.close", "ok", 20*time.Minute)
	}
	s.save(t, "executing", "order.close", "wait", 0)
	s.save(t, "cancelled", "order.close", "ok", time.Hour)
	s.save(t, "pending", "mail.send", `{"to":"a@example.com"}`, time.Hour, delaytask.WithKey("order-4711"))
	s.save(t, "long", "order.close", strings.Repeat(`{"to":"a@example.com"} `, 400), time.Hour)
	s.act(t)
	_, err = s.Cancel(ctx, delaytask.ID(s.ids["cancelled"]))
	servertest.OK(t, err)
	for _, status := range []delaytask.Status{delaytask.Failed, delaytask.Completed, delaytask.Executing} {
		s.await(t, string(status), status)
	}
	nodes, err := s.Nodes(ctx)
	servertest.OK(t, err)
	s.ids["node"] = int64(nodes[0].Number)
	return s
}

// act has people change something: bulk changes in every state, and entries of every outcome in the audit log.
func (s *site) act(t *testing.T) {
	t.Helper()
	log := audit.New(audit.Config{Store: core.Of(s.Scheduler).Store(), Log: quiet})
	begun := make(chan struct{}, 1)
	start := func(name, verb string, change func(context.Context) error) {
		t.Helper()
		about := bulk.About{
			Verb: verb, Who: "shop-ops", Tasks: 4000, AsOf: s.Now(),
			Filter: delaytask.Filter{Tag: "order.close", Status: delaytask.Pending, Key: "order-4711"},
		}
		begin := func() (*audit.Entry, error) {
			return log.Begin(t.Context(), audit.Act{
				Who: about.Who, Via: audit.Dashboard, Action: audit.Action("bulk." + verb), Tag: about.Filter.Tag,
				Detail: wire.FilterText(&about.Filter, about.AsOf),
			})
		}
		run, err := core.Of(s.Scheduler).Bulks().Start(about, begin,
			func(ctx context.Context, progress func(int)) (int, error) {
				progress(1500)
				begun <- struct{}{}
				return 1500, change(ctx)
			})
		servertest.OK(t, err)
		servertest.Receive(t, begun, "the bulk change runs")
		s.runs[name] = run.ID
	}
	stays := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	ends := func(name string) { // before the next begins: one caller has two under way at most
		t.Helper()
		servertest.Eventually(t, "the bulk change has ended", func() bool {
			run, _ := core.Of(s.Scheduler).Bulks().Get(s.runs[name])
			return !run.Ended.IsZero()
		})
	}
	start("running", "cancel", stays)
	start("stopped", "cancel", stays)
	core.Of(s.Scheduler).Bulks().Stop(s.runs["stopped"])
	ends("stopped")
	start("done", "retry", func(context.Context) error { return nil })
	ends("done")
	start("broken", "retry", func(context.Context) error {
		return &row.Error{Op: "retry tasks", Err: errors.New("access denied for user 'tasks'@'10.0.0.7'")}
	})
	ends("broken")
	target := strconv.FormatInt(s.ids["pending"], 10)
	for _, err := range []error{nil, delaytask.ErrFinished, errors.New("boom"), delaytask.ErrOutcomeUnknown} {
		_ = log.Do(t.Context(), audit.Act{
			Who: "shop-ops", Action: audit.CancelTask, Target: target, Tag: "mail.send",
		}, func(context.Context) (int64, error) { return 0, err })
	}
	// Its process does not tell whether it is under way.
	untold, err := core.Of(s.Scheduler).Store().BeginAudit(t.Context(), row.AuditEntry{
		Who: "night-watch", Via: string(audit.API), Action: string(audit.RetryAll), Tag: "mail.send",
		Detail: "status=failed error=refused",
	})
	servertest.OK(t, err)
	s.runs["untold"] = strconv.FormatInt(untold, 10)
}

// await waits until a task has a status.
func (s *site) await(t *testing.T, name string, status delaytask.Status) {
	t.Helper()
	servertest.Eventually(t, fmt.Sprintf("the task %s is %s", name, status), func() bool {
		task, err := s.Get(t.Context(), delaytask.ID(s.ids[name]))
		servertest.OK(t, err)
		return task.Status == status
	})
}

// path puts ids into a path: {failed} is the id of a failed task.
func (s *site) path(path string) string {
	var pairs []string
	for name, id := range s.ids {
		pairs = append(pairs, "{"+name+"}", strconv.FormatInt(id, 10))
	}
	for name, id := range s.runs {
		pairs = append(pairs, "{"+name+"}", id)
	}
	return strings.NewReplacer(pairs...).Replace(path)
}
