package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/api"
	"github.com/delaytask/delaytask/internal/server/compat"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// judge decides whether a token is valid.
type judge struct{ err error }

func (judge) Asked(context.Context) (bool, error)   { return true, nil }
func (judge) Missing(context.Context) (bool, error) { return false, nil }

func (j judge) Check(context.Context, string) (access.Caller, error) { return access.Everyone(), j.err }

// legacyAPI makes the API of a service anew, with the routes of the legacy protocols.
func legacyAPI(t *testing.T, r *running, change func(*api.Config, *compat.Config)) *api.API {
	t.Helper()
	p, log := r.service.parts, slog.New(slog.DiscardHandler)
	old := compat.Config{Scheduler: p.scheduler, Log: log, BodyLimit: 1000, Stopping: t.Context()}
	c := api.Config{
		Scheduler: p.scheduler, Log: log, BodyLimit: 1000, Stopping: t.Context(), Requests: p.store,
		Receivers: p.receivers,
	}
	change(&c, &old)
	legacy, err := compat.New(old)
	servertest.OK(t, err)
	c.Compat = legacy
	api, err := api.New(c)
	servertest.OK(t, err)
	return api
}

// TestOldClientsReadEveryAnswer has each layer before the legacy routes refuse their requests, and their handler panic.
func TestOldClientsReadEveryAnswer(t *testing.T) {
	r := serve(t, sqlite(t))
	f := func(name string, want int, words string, change func(*api.Config, *compat.Config), header ...string) {
		t.Helper()
		api := legacyAPI(t, r, change)
		client := servertest.Inside(t, api)
		client.Host = "tasks.example"
		if name == "stopping" {
			servertest.OK(t, api.Close(t.Context()))
		}
		for _, request := range [][2]string{
			{http.MethodPost, "/compat/topics"}, {http.MethodPost, "/o/add"}, {http.MethodGet, "/o/get?topic=t"},
			{http.MethodGet, "/o/complete?topic=t&id=1"},
		} {
			if name == "panic" && request[0] == http.MethodGet {
				continue // only what is added is checked
			}
			a := client.Want(want, "", request[0], request[1], `{"command":"add","topic":"t","id":"1"}`, header...)
			if !strings.HasPrefix(a.Text, `{"success":false,"error":"`) || !strings.Contains(a.Text, words) ||
				a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %s answers %s", name, request[1], a.Text)
			}
		}
	}
	nothing := func(*api.Config, *compat.Config) {}
	judged := func(err error) func(*api.Config, *compat.Config) {
		return func(c *api.Config, _ *compat.Config) { c.Tokens = judge{err} }
	}
	bearer := []string{"Authorization", "Bearer x"}
	f("stopping", http.StatusServiceUnavailable, "stopping; try again", nothing)
	f("panic", http.StatusInternalServerError, "unexpected", func(_ *api.Config, c *compat.Config) {
		c.Check = func(string, []byte) error { panic("broken") }
	})
	f("no token", http.StatusUnauthorized, "send a token", judged(nil))
	f("unknown token", http.StatusUnauthorized, "unknown", judged(access.ErrUnauthorized), bearer...)
	f("two tokens", http.StatusBadRequest, "more than one", judged(nil), append(bearer, bearer...)...)
	f("tokens that cannot be read", http.StatusServiceUnavailable, "try again", judged(access.ErrUnavailable),
		bearer...)
	f("a page of another origin", http.StatusForbidden, "another origin", nothing, "Sec-Fetch-Site", "cross-site")
	f("another host", http.StatusMisdirectedRequest, "not known by that name",
		func(c *api.Config, _ *compat.Config) { c.CheckHost = true })
}

// lastCheck accepts a caller until its body is read.
type lastCheck struct {
	judge
	io.Reader
	revoked bool
}

func (l *lastCheck) Check(ctx context.Context, bearer string) (access.Caller, error) {
	if l.revoked {
		return access.Caller{}, access.ErrUnauthorized
	}
	return l.judge.Check(ctx, bearer)
}

func (l *lastCheck) Read(p []byte) (int, error) {
	l.revoked = true
	return l.Reader.Read(p)
}

func TestTokenThatIsRevokedWhileABodyArrivesSavesNothing(t *testing.T) {
	r := serve(t, sqlite(t))
	for path, body := range map[string]string{
		"/v1/tasks": `{"tag":"t"}`, "/o/add": `{"topic":"t","id":"1"}`,
		"/compat/topics": `{"command":"add","topic":"t","id":"2"}`,
	} {
		caller := &lastCheck{Reader: strings.NewReader(body)}
		api := legacyAPI(t, r, func(c *api.Config, _ *compat.Config) { c.Tokens = caller })
		client := servertest.Inside(t, api)
		req, err := client.Request(http.MethodPost, path, caller, "Authorization", "Bearer x")
		servertest.OK(t, err)
		if a, err := client.Send(req); err != nil || a.Status != http.StatusUnauthorized {
			t.Errorf("%s answers %d %s, %v", path, a.Status, a.Text, err)
		}
	}
}
