package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

// TestTheAnswerToASaveIsWhatIsStored compares the task in the answer to a save with the stored one. The database sets
// created and updated; they are absent unless the task had to be read.
func TestTheAnswerToASaveIsWhatIsStored(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		r := serve(t, settings(db.DSN))
		f := func(save string, wantStatus int, moments bool) {
			t.Helper()
			saved := servertest.Ask[map[string]any](&r.Client, wantStatus, "POST", "/v1/tasks", save)
			stored := servertest.Ask[map[string]any](&r.Client, 200, "GET", "/v1/tasks/"+saved["id"].(string), "")
			if _, shown := saved["created"]; shown != moments {
				t.Errorf("%s: created is shown: %v", save, shown)
			}
			delete(saved, "duplicate")
			delete(saved, "existing")
			if !moments {
				maps.DeleteFunc(stored, func(name string, _ any) bool { return name == "created" || name == "updated" })
			}
			if !reflect.DeepEqual(saved, stored) {
				was, _ := json.Marshal(saved)
				is, _ := json.Marshal(stored)
				t.Errorf("answered\n%s, stored is\n%s", was, is)
			}
		}
		f(`{"tag":"t","delay":"1h"}`, 201, false)
		f(`{"tag":"t","body":{"n":[1, 2]},"delay":"1h0.0015s","key":"k","ttr":"90.0001s","max_attempts":3,"priority":-7,
			"headers":{"a":"b"},"app":"shop","max_lateness":"1500ms","late_policy":"fail"}`, 201, false)
		f(`{"tag":"t","at":"2031-02-03T04:05:06.7891234+02:00","no_attempt_limit":true}`, 201, false)
		f(`{"tag":"t","key":"k","app":"shop"}`, 200, true)
		f(`{"tag":"t","delay":"1h","id":"1234567890123"}`, 201, false)
		f(`{"tag":"t","delay":"1h","id":"1234567890123"}`, 201, true)
	})
}

// TestACallerThatHangsUpIsNoFailure has callers hang up during a long poll. They get no tasks.
func TestACallerThatHangsUpIsNoFailure(t *testing.T) {
	r := serve(t, sqlite(t))
	f := func(tag, method, path, counted, level string) {
		t.Helper()
		ctx, hangUp := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, method, r.URL+path, nil)
		servertest.OK(t, err)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if a, err := r.Send(req); err == nil {
				t.Errorf("%s was answered %d", path, a.Status)
			}
		}()
		r.AwaitServed(tag)
		hangUp()
		<-gone
		servertest.Eventually(t, "it is counted", func() bool {
			return strings.Contains(r.Call("GET", "/metrics", "").Text,
				`delaytask_http_requests_total{method="`+method+`",`+counted)
		})
		saved := r.Save(`{"tag":"` + tag + `","ttr":"1h"}`)
		if got := r.Pop(tag, ""); got.ID != saved.ID || got.Attempt != 1 {
			t.Errorf("popped %+v", got)
		}
		if strings.Contains(r.logged.String(), level) {
			t.Errorf("%s is logged as a failure: %s", path, r.logged)
		}
	}
	f("a", "POST", "/v1/tags/a/pop?wait=50s", `route="/v1/tags/{tag}/pop",status="499"} 1`, "level=WARN")
	f("b", "GET", "/o/get?topic=b&wait=50000", `route="/o/get",status="503"} 1`, "level=ERROR")
}

func TestBeyondLoopbackTokensAreAskedFor(t *testing.T) {
	f := func(change func(*config.Server), want string) {
		t.Helper()
		c := sqlite(t)
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
	f(func(*config.Server) {}, "")
	f(func(s *config.Server) { s.Auth = "none" }, "--insecure")
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

func TestGetsThatTakeJobsAreOffWhereBrowsersDoNotSayWhichPageAsks(t *testing.T) {
	open := func(says string, change func(*config.Server)) *running {
		t.Helper()
		c := sqlite(t)
		change(&c.Server)
		r := serve(t, c)
		if got := r.service.Gets(); !strings.HasPrefix(got, says) {
			t.Errorf("%+v: the service says that they are %s", c.Server, got)
		}
		return r
	}
	loopback := open("on: loopback names alone", func(s *config.Server) {
		s.Listen, s.Insecure, s.Hosts = "0.0.0.0:0", true, []string{"localhost"}
	})
	named := open("off: any web page", func(s *config.Server) { s.Hosts = []string{"Tasks.example"} })
	asking := open("on for t, u.*, with a token or the header Delaytask-Client", func(s *config.Server) {
		s.Auth, s.GetTopics = "token", []string{"t", "u.*"}
	})
	secret, token, err := access.New("admin", []string{"*"}, []access.Verb{access.All}, 0)
	if err == nil {
		_, err = asking.service.parts.store.CreateToken(t.Context(), token)
	}
	servertest.OK(t, err)
	admin := []string{"Authorization", "Bearer " + secret}
	for _, path := range []string{"/o/get?topic=", "/o/complete?id=1&topic="} {
		loopback.Want(200, "", "GET", path+"t", "")
		named.Want(403, "", "GET", path+"t", "")
		asking.Want(200, "", "GET", path+"t", "", admin...)
		asking.Want(403, "", "GET", path+"other", "", admin...)
		asking.Want(403, "", "GET", path+"t", "", append(admin, "User-Agent", "Mozilla/5.0")...)
	}
}

func TestAServiceThatIsStoppedAmidItsStartStopsInOrder(t *testing.T) {
	s, err := Open(t.Context(), sqlite(t), slog.New(slog.DiscardHandler))
	servertest.OK(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.Join(errors.New("SIGTERM"), context.Canceled))
	servertest.OK(t, s.Run(ctx))
}

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true // so that no connection outlives its test
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// running is a service that runs until its test ends.
type running struct {
	servertest.Client
	service *Service
	logged  *servertest.Log
	stop    func()
}

func settings(dsn string) config.Config {
	c := config.Default()
	c.DSN, c.Migrate, c.Server.Listen = dsn, true, "127.0.0.1:0"
	return c
}

func sqlite(t *testing.T) config.Config { return settings(dbtest.New(t, dbtest.SQLite).DSN) }

// serve runs a service, which may be changed before.
func serve(t *testing.T, c config.Config, change ...func(*Service)) *running {
	t.Helper()
	logged := &servertest.Log{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(logged, nil)))
	servertest.OK(t, err)
	for _, f := range change {
		f(s)
	}
	return &running{servertest.Client{TB: t, URL: s.URL()}, s, logged, servertest.Run(t, s)}
}
