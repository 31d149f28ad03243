//go:build unix

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// readOnly returns a server that takes no writes of the account, and the task of tag t that is on it.
func readOnly(t *testing.T, kind dbtest.Kind) (d dbtest.Database, id int64) {
	t.Helper()
	d = dbtest.NewDisposable(t, kind).Database(t)
	s := open(t, d, quiet)
	id = save(t, s, "t", time.Minute)
	servertest.OK(t, s.Stop(t.Context()))
	cfg := mysqlConfig(t, d)
	outside := outside(t, d)
	execute(t, outside, "CREATE USER 'plain'@'%' IDENTIFIED BY 'pw'") // root of MariaDB can write to a read-only server
	execute(t, outside, "GRANT ALL ON `"+cfg.DBName+"`.* TO 'plain'@'%'")
	execute(t, outside, "SET GLOBAL read_only = 1")
	cfg.User, cfg.Passwd = "plain", "pw"
	return dbtest.Database{Kind: kind, DSN: cfg.FormatDSN()}, id
}

func TestWhatOnlyReadsWorksOnAReadOnlyServer(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			d, id := readOnly(t, kind)
			if _, err := scheduler.Open(t.Context(), d.DSN, scheduler.Config{}); err == nil {
				t.Fatal("a process that writes has started")
			}
			s := open(t, d, quiet, func(c *scheduler.Config) { c.ReadOnly = true })
			ctx := t.Context()
			_, getErr := s.Get(ctx, delaytask.ID(id))
			page, listErr := s.List(ctx, delaytask.Filter{Tag: "t"})
			stats, statsErr := s.Stats(ctx)
			overview, overviewErr := s.Overview(ctx)
			forecast, forecastErr := s.Forecast(ctx, report.ForecastFilter{})
			_, explainErr := s.Explain(ctx, delaytask.ID(id))
			nodes, nodesErr := s.Nodes(ctx)
			servertest.OK(t, errors.Join(getErr, listErr, statsErr, overviewErr, forecastErr, explainErr, nodesErr))
			if len(page.Tasks) != 1 || len(stats) != 1 || len(forecast.Tags) != 1 || len(nodes) != 0 {
				t.Errorf("it reads %+v, %+v, %+v, %+v", page.Tasks, stats, forecast.Tags, nodes)
			}

			if f := overview.Attention; len(f) != 1 || f[0].Code != report.FindingReplica {
				t.Errorf("the overview has %+v", f)
			}

			_, saveErr := s.SaveDelayTask(ctx, "t", nil, 0)
			_, cancelErr := s.Cancel(ctx, delaytask.ID(id))
			for name, err := range map[string]error{
				"save": saveErr, "cancel": cancelErr, "pause": s.Pause(ctx, "t"), "start": s.Start(ctx),
				"register": s.Register("t", processor.Func(nothing)),
			} {
				if !errors.Is(err, scheduler.ErrReadOnly) {
					t.Errorf("%s: %v", name, err)
				}
			}

			pages, err := dashboard.New(s, dashboard.Options{Who: func(*http.Request) (dashboard.User, error) {
				return dashboard.User{Name: "a", Role: dashboard.Admin, Tags: []string{"*"}}, nil
			}})
			servertest.OK(t, err)
			for _, path := range []string{"/", "/tasks", "/tags", "/nodes", "/schedules", "/failures",
				fmt.Sprint("/tasks/", id), "/tags/t"} {
				w := httptest.NewRecorder()
				pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "read-only mode") {
					t.Errorf("%s: %d %.500s", path, w.Code, w.Body)
				}
			}
		})
	}
}
