package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/server/signin"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// withPages serves pages that name their caller. /boom panics.
func withPages(t *testing.T, c config.Config) *running {
	t.Helper()
	logged := &servertest.Log{}
	s, err := Open(t.Context(), c, slog.New(slog.NewTextHandler(logged, nil)), Dashboard(stub))
	servertest.OK(t, err)
	return &running{servertest.Client{TB: t, URL: s.URL()}, s, logged, servertest.Run(t, s)}
}

func stub(_ *scheduler.Scheduler, readOnly bool) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/boom" {
			panic("boom")
		}
		c := access.From(r.Context())
		_, _ = fmt.Fprintf(w, "%s for %q, changes %t, read %t", r.URL.EscapedPath(), c.Name(), c.AnyTag(access.Change),
			readOnly)
	}), nil
}

func (r *running) grant(name string) (secret string) {
	r.TB.Helper()
	secret, token, err := access.New(name, []string{"*"}, []access.Verb{access.All}, 0)
	if err == nil {
		_, err = r.service.parts.store.CreateToken(r.TB.Context(), token)
	}
	servertest.OK(r.TB, err)
	return secret
}

const formType = "application/x-www-form-urlencoded"

func TestPeopleSignInToTheDashboard(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		c := settings(db.DSN)
		c.Server.Auth = "token"
		r := withPages(t, c)
		secret := r.grant("ops")
		token := url.Values{"token": {secret}, "next": {"tasks/5?a=b"}}.Encode()
		signIn := func(status int) servertest.Answer {
			t.Helper()
			return r.Want(status, "", "POST", "/ui/login", token, "Content-Type", formType, "Origin", r.URL)
		}
		leads := func(a servertest.Answer, to string) {
			t.Helper()
			if got := a.Header.Get("Location"); got != to {
				t.Errorf("led to %q, want %q", got, to)
			}
		}
		leads(r.Want(303, "", "GET", "/", ""), "ui/")
		leads(r.Want(303, "", "GET", "/ui", ""), "ui/")
		leads(r.Want(303, "", "GET", "/ui/tasks/5?a=b", ""), "../login?next=tasks%2F5%3Fa%3Db")
		in := signIn(303)
		leads(in, "./tasks/5?a=b")
		value, _, _ := strings.Cut(in.Header.Get("Set-Cookie"), ";")
		session := []string{"Cookie", value}
		if got := r.Want(200, "", "GET", "/ui/tags/a%2Fb", "", session...).Text; got !=
			`/tags/a%2Fb for "ops", changes true, read false` {
			t.Errorf("the page says %s", got)
		}
		servertest.Eventually(t, "the request is logged and counted", func() bool {
			metrics := r.Call("GET", "/metrics", "", "Authorization", "Bearer "+secret).Text
			return strings.Contains(r.logged.String(), "route=/ui/ status=200") &&
				strings.Contains(r.logged.String(), "token=ops") &&
				strings.Contains(metrics,
					`delaytask_http_requests_total{method="POST",route="/ui/login",status="303"} 1`)
		})
		if strings.Contains(r.logged.String(), secret) || strings.Contains(r.logged.String(), value) {
			t.Errorf("a secret is logged:\n%s", r.logged)
		}

		for _, refused := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}, nil,
		} {
			a := r.Want(403, "", "POST", "/ui/tasks/5/cancel", "", append(refused, session...)...)
			if !strings.Contains(a.Text, "pass the header Host on unchanged") {
				t.Errorf("%q: %s", refused, a.Text)
			}
		}
		a := r.Want(500, "", "GET", "/ui/boom", "", session...)
		if !strings.Contains(a.Text, "<title>") || a.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("a panic is answered %s", a.Text)
		}
		r.Want(404, "no_such_route", "GET", "/ui//tasks", "", session...)
		r.Want(404, "no_such_route", "GET", "/ui/t%61sks", "", session...)
		r.Want(401, "unauthorized", "GET", "/v1/tasks", "", session...) // a session is for the dashboard alone

		leads(r.Want(303, "", "POST", "/ui/logout", "", append(session, "Origin", r.URL)...), "login")
		leads(r.Want(303, "", "GET", "/ui/", "", session...), "login")
	})
}

func TestThePagesAskTheRulesOfTheTagHTTP(t *testing.T) {
	r := serve(t, sqlite(t))
	const body = `{"method":"GET","url":"https://example.com/"}`
	id := r.Save(`{"tag":"http","delay":"1h","body":` + body + `}`).ID.String()
	for changed, says := range map[string]string{
		"x": "What was entered is not valid.", strings.Replace(body, "example.com", "10.0.0.1", 1): "10.0.0.1",
	} {
		form := url.Values{"body": {changed}, "version": {"0"}}.Encode()
		a := r.Call("POST", "/ui/tasks/"+id+"/body", form, "Content-Type", formType, "Origin", r.URL)
		if a.Status != http.StatusBadRequest || !strings.Contains(a.Text, says) {
			t.Errorf("%s: %d %s", changed, a.Status, a.Text)
		}
	}
}

func TestTheDashboardIsServedAsTheSettingsSay(t *testing.T) {
	change := func(f func(*config.Server)) config.Config {
		c := sqlite(t)
		f(&c.Server)
		return c
	}
	open := withPages(t, change(func(*config.Server) {}))
	if got := open.Want(200, "", "GET", "/ui/tasks", "").Text; got != `/tasks for "", changes true, read false` {
		t.Errorf("without tokens: %s", got)
	}
	open.grant("ops") // from now on they are asked for
	servertest.Eventually(t, "they are", func() bool { return open.Call("GET", "/ui/", "").Status == 303 })

	read := withPages(t, change(func(s *config.Server) { s.Dashboard = "read" }))
	if got := read.Want(200, "", "GET", "/ui/", "").Text; got != `/ for "", changes false, read true` {
		t.Errorf("to read alone: %s", got)
	}
	off := withPages(t, change(func(s *config.Server) { s.Dashboard = "off" }))
	for _, path := range []string{"/", "/ui", "/ui/", "/ui/login"} {
		off.Want(404, "no_such_route", "GET", path, "")
	}

	proxied := withPages(t, change(func(s *config.Server) {
		s.PublicURL, s.TrustedProxies = "https://tasks.example.com", []string{"127.0.0.0/8"}
	}))
	proxied.Host = "tasks.example.com"
	proxied.Want(200, "", "GET", "/ui/", "")
	proxied.Host = "evil.example"
	proxied.Want(421, "", "GET", "/ui/", "")
	proxied.grant("ops")
	proxied.Host = "tasks.example.com"
	form := []string{"Content-Type", formType, "Origin", "https://tasks.example.com", "X-Forwarded-For", "192.0.2.1"}
	servertest.Eventually(t, "logins are limited", func() bool {
		return proxied.Call("POST", "/ui/login", "token=x", form...).Status == 429
	})
	form[len(form)-1] = "192.0.2.2"
	proxied.Want(401, "", "POST", "/ui/login", "token=x", form...)
}

func TestWhatIsWrongWithTheDashboardIsSaidAtTheStart(t *testing.T) {
	for _, change := range []func(*config.Config) Pages{
		func(c *config.Config) Pages { c.Server.TrustedProxies = []string{"proxy"}; return stub },
		func(*config.Config) Pages {
			return func(*scheduler.Scheduler, bool) (http.Handler, error) { return nil, errors.New("proxy") }
		},
	} {
		c := sqlite(t)
		pages := change(&c)
		if _, err := Open(t.Context(), c, slog.New(slog.DiscardHandler), Dashboard(pages)); err == nil ||
			!strings.Contains(err.Error(), "proxy") {
			t.Errorf("opened, %v", err)
		}
	}
	if _, err := signin.New(signin.Config{}); err == nil {
		t.Error("a login without its parts was made")
	}
}
