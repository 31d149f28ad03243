package api

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestAServerWithoutTokensIsCalledByItsOwnNames(t *testing.T) {
	t.Parallel()
	for _, addresses := range []bool{false, true} {
		s := newSite(t, func(c *Config) {
			c.CheckHost, c.Addresses, c.Hosts = true, addresses,
				[]string{"tasks.internal"}
		})
		f := func(known bool, hosts ...string) {
			t.Helper()
			for _, s.Host = range hosts {
				for _, path := range []string{"/v1/tags", "/docs", "/openapi.json", "/healthz"} {
					if known {
						s.Want(200, "", "GET", path, "")
					} else {
						s.Want(421, wire.CodeMisdirected, "GET", path, "")
					}
				}
			}
		}
		f(true, "localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8080", "tasks.internal",
			"Tasks.Internal:8080")
		f(false, "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
			"localhost@evil", "tasks.internal.evil")
		f(addresses, "10.0.0.1", "10.1.2.3:8080", "0.0.0.0", "[2001:db8::1]", "[::ffff:127.0.0.1]:8080", "[::]")
	}
}

func TestAWebPageOfAnotherOriginIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		s.Want(403, wire.CodeCrossOrigin, "POST", "/v1/tasks", `{"tag":"t"}`, header...)
		s.Want(403, wire.CodeCrossOrigin, "POST", "/v1/tags/t/pop", "", header...)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"},
		{"Origin", "http://localhost"}} {
		ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t"}`, header...)
	}
}

func TestAPathTellsItsMethods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	document := ok[struct{ Paths map[string]map[string]any }](s, 200, "GET", "/openapi.json", "")
	methods := []string{"DELETE", "GET", "PATCH", "POST", "PUT"}
	parameter := regexp.MustCompile(`\{\w+\}`)
	for path := range document.Paths {
		var takes []string // /v1/tasks/batch is also a /v1/tasks/{id}
		for template, operations := range document.Paths {
			if regexp.MustCompile("^" + parameter.ReplaceAllString(template, "[^/]+") + "$").MatchString(path) {
				for method := range operations {
					takes = append(takes, strings.ToUpper(method))
				}
			}
		}
		slices.Sort(takes)
		takes = slices.Compact(takes)
		for _, method := range methods {
			if slices.Contains(takes, method) {
				continue
			}
			a := s.Want(405, wire.CodeMethodNotAllowed, method, parameter.ReplaceAllString(path, "1"), "")
			if allowed := a.Header.Get("Allow"); allowed != strings.Join(takes, ", ") {
				t.Errorf("%s %s: Allow is %q, want %v", method, path, allowed, takes)
			}
		}
	}
}

func TestAPanicEndsItsOwnRequestOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	broken := s.api.recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("secret of the panic")
	}))
	healthy := s.api.handler
	s.api.handler = broken
	p := s.Want(500, wire.CodeInternal, "GET", "/v1/tags", "")
	if strings.Contains(p.Detail, "secret") || !strings.Contains(s.logged.String(), "secret of the panic") {
		t.Errorf("answered %q, logged %s", p.Detail, s.logged)
	}
	s.api.handler = healthy
	s.Save(`{"tag":"t"}`)
}

func TestEveryRequestIsObservedByRouteAndTokenName(t *testing.T) {
	t.Parallel()
	var seen []Request
	s := newSite(t, guarded, func(c *Config) {
		c.Observe = func(_ context.Context, r Request) {
			seen = append(seen, r)
		}
	})
	mine := s.token("mine", "*", access.All)
	f := func(method, target, body string, status int, route, name string, header ...string) {
		t.Helper()
		seen = nil
		got := s.Call(method, target, body, header...)
		if len(seen) != 1 || seen[0].Route != route || seen[0].Status != status || seen[0].Method != method ||
			seen[0].Bytes != int64(len(got.Text)) || seen[0].Token != name {
			t.Errorf("%s %s: %+v", method, target, seen)
		}
	}
	f("POST", "/v1/tasks", `{"tag":"t"}`, 201, "/v1/tasks", "mine", mine...)
	f("GET", "/v1/tasks/1", "", 404, "/v1/tasks/{id}", "mine", mine...)
	f("GET", "/v1/tags/secret/keys/secret", "", 404, "/v1/tags/{tag}/keys/{key}", "mine", mine...)
	f("POST", "/v1/tags/u/pop", "", 204, "/v1/tags/{tag}/pop", "mine", mine...)
	f("GET", "/v1/tasks", "", 401, "/v1/", "")
	f("GET", "/healthz", "", 200, "/healthz", "")
	f("GET", "/secret", "", 404, "", "")
}

func TestEncodedLettersInAPathReachNoRoute(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, route := range []string{"GET /%6detrics", "GET /%72eadyz", "GET /openapi%2Ejson", "GET /%76%31/tasks",
		"GET /v1/t%61sks", "POST /v1/tags/a/%70op", "POST /v1/tasks/b%61tch", "GET /%6f/get?topic=a", "GET /u%69/",
		"GET /ui/t%61sks"} {
		method, path, _ := strings.Cut(route, " ")
		s.Want(404, wire.CodeNoSuchRoute, method, path, "")
	}
	s.Want(204, "", "POST", "/v1/tags/a%2Fb%61/pop", "")
	s.Want(200, "", "GET", "/readyz", "")
}
