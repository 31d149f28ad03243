package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestAServerWithoutTokensIsCalledByItsOwnNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.CheckHost, c.Hosts = true, []string{"tasks.internal"} })
	f := func(host string, want int) {
		t.Helper()
		for _, path := range []string{"/v1/tags", "/docs", "/openapi.json", "/healthz"} {
			r := newRequest(t, "GET", path, "")
			r.Host = host
			if got := s.serve(r); got.status != want {
				t.Errorf("%q %s: %d %s, want %d", host, path, got.status, got.text, want)
			}
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8080", "tasks.internal", "Tasks.Internal:8080"} {
		f(host, http.StatusOK)
	}
	for _, host := range []string{
		"", "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]:8080", "[::]", "localhost@evil", "tasks.internal.evil",
	} {
		f(host, http.StatusMisdirectedRequest)
	}
}

func TestAWebPageOfAnotherOriginIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
	} {
		s.refuses(403, wire.CodeCrossOrigin, "POST", "/v1/tasks", `{"tag":"t"}`, header...)
		s.refuses(403, wire.CodeCrossOrigin, "DELETE", "/v1/tasks/1", "", header...)
		s.refuses(403, wire.CodeCrossOrigin, "POST", "/v1/tags/t/pop", "", header...)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://localhost"}} {
		ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t"}`, header...)
	}
}

func TestAPanicEndsItsOwnRequestOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	broken := s.api.recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret of the panic") }))
	healthy := s.api.handler
	s.api.handler = broken
	p := s.refuses(500, wire.CodeInternal, "GET", "/v1/tags", "")
	if strings.Contains(p.Detail, "secret") || !strings.Contains(s.logged.String(), "secret of the panic") {
		t.Errorf("answered %q, logged %s", p.Detail, s.logged)
	}
	s.api.handler = healthy
	s.save(`{"tag":"t"}`)
}

func TestEveryRequestIsToldByItsRoute(t *testing.T) {
	t.Parallel()
	var seen []Request
	s := newSite(t, func(c *Config) { c.Observe = func(_ context.Context, r Request) { seen = append(seen, r) } })
	f := func(method, target, body string, status int, route string) {
		t.Helper()
		seen = nil
		got := s.send(method, target, body)
		if len(seen) != 1 || seen[0].Route != route || seen[0].Status != status || seen[0].Method != method || seen[0].Bytes != int64(len(got.text)) {
			t.Errorf("%s %s: %+v", method, target, seen)
		}
	}
	f("POST", "/v1/tasks", `{"tag":"t"}`, 201, "/v1/tasks")
	f("GET", "/v1/tasks/1", "", 404, "/v1/tasks/{id}")
	f("GET", "/v1/tags/secret/keys/secret", "", 404, "/v1/tags/{tag}/keys/{key}")
	f("GET", "/healthz", "", 200, "/healthz")
	f("GET", "/secret", "", 404, "")
	f("POST", "/v1/tags/u/pop", "", 204, "/v1/tags/{tag}/pop")
}

func TestEveryRequestIsToldByTheNameOfItsToken(t *testing.T) {
	t.Parallel()
	var seen Request
	s := newSite(t, func(c *Config) {
		c.Tokens, c.Observe = access.NewTokens(c.Requests.(*store.Store)), func(_ context.Context, r Request) { seen = r }
	})
	for name, header := range map[string][]string{"": nil, "mine": s.token("mine", []string{"mine"}, access.Read)} {
		if s.send("GET", "/v1/tasks", "", header...); seen.Token != name || seen.Route != "/v1/tasks" && name != "" {
			t.Errorf("%q is told as %+v", name, seen)
		}
	}
}

func TestABrokenConfigurationMakesNoAPI(t *testing.T) {
	t.Parallel()
	if api, err := New(Config{}); err == nil {
		t.Errorf("made %v of nothing", api)
	}
}
