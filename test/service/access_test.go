package service

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

// token makes one, which a running server knows within seconds.
func token(t *testing.T, db dbtest.Database, name, tags, verbs string) (bearer string) {
	t.Helper()
	out, errs, code := run(t, environment(db), "token", "create", name, "--tags", tags, "--verbs", verbs)
	if code != 0 {
		t.Fatalf("token create: %d, %s", code, errs)
	}
	return "Bearer " + strings.TrimSpace(out)
}

func TestTokensDecideWhoMayDoWhat(t *testing.T) {
	each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db, "DELAYTASK_SERVER_AUTH=token")
		if !strings.Contains(s.said.String(), "asked for: delaytask token create") {
			t.Errorf("the server says %s", s.said)
		}
		shop := token(t, db, "shop", "order.*", "save,read")
		mailer := token(t, db, "mailer", "order.mail", "work")
		caller := token(t, db, "caller", "*", "save_http")
		admin := token(t, db, "admin", "*", "all")
		eventually(t, "the tokens are known", func() bool {
			return s.call("GET", "/v1/stats", "", "Authorization", admin).status == 200
		})
		const (
			save     = `{"tag":"order.mail"}`
			saveHTTP = `{"tag":"http","body":{"url":"http://127.0.0.1:1/"},"delay":"1h"}`
			register = `{"app":"a","address":"http://127.0.0.1:1/","tags":["order.mail"]}`
		)
		for _, tt := range []struct {
			bearer, method, path, body string
			status                     int
		}{
			{"", "POST", "/v1/tasks", save, 401},
			{"Bearer dt_nobody", "POST", "/v1/tasks", save, 401},
			{"Basic YTpi", "GET", "/v1/tasks", "", 401},
			{"", "POST", "/compat/topics", `{}`, 401},
			{"", "GET", "/v1/nothing", "", 401},
			{shop, "POST", "/v1/tasks", save, 201},
			{shop, "POST", "/v1/tasks", `{"tag":"bill"}`, 403},
			{shop, "POST", "/v1/tasks", saveHTTP, 403},
			{shop, "POST", "/v1/tasks/batch", `[` + save + `,{"tag":"bill"}]`, 403},
			{shop, "GET", "/v1/tasks?tag=order.mail", "", 200},
			{shop, "GET", "/v1/tasks?tag=bill", "", 403},
			{shop, "GET", "/v1/tasks", "", 403},
			{shop, "POST", "/v1/tags/order.mail/pop", "", 403},
			{shop, "POST", "/v1/tags/order.mail/pause", "", 403},
			{shop, "POST", "/v1/workers", register, 403},
			{mailer, "POST", "/v1/tags/order.mail/pop?wait=20s", "", 200},
			{mailer, "POST", "/v1/tags/order.close/pop", "", 403},
			{mailer, "POST", "/v1/pop?tag=order.mail&tag=order.close", "", 403},
			{mailer, "POST", "/v1/tasks", save, 403},
			{caller, "POST", "/v1/tasks", saveHTTP, 201},
			{caller, "POST", "/v1/tasks", save, 403},
			{admin, "POST", "/v1/tasks", saveHTTP, 201},
			{admin, "POST", "/v1/workers", register, 201},
			{admin, "POST", "/v1/tags/order.mail/pause", "", 204},
			{"", "GET", "/healthz", "", 200},
			{"", "GET", "/readyz", "", 200},
			{"", "GET", "/openapi.json", "", 200},
		} {
			var headers []string
			if tt.bearer != "" {
				headers = []string{"Authorization", tt.bearer}
			}
			a := s.call(tt.method, tt.path, tt.body, headers...)
			if a.status != tt.status || tt.status == 401 && a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%.12s %s %s: %d, want %d: %s", tt.bearer, tt.method, tt.path, a.status, tt.status, a.text)
			}
		}
		prometheus := token(t, db, "prometheus", "*", "metrics")
		eventually(t, "the metrics are shown, and who has seen them", func() bool { // not every request has a line
			return s.call("GET", "/metrics", "", "Authorization", prometheus).status == 200 && strings.Contains(s.logged.String(), " token=prometheus")
		})
		s.call("GET", "/metrics", "").wants(t, 401, wire.CodeUnauthorized)
		if _, errs, code := run(t, environment(db), "token", "revoke", "shop"); code != 0 {
			t.Fatal(errs)
		}
		eventually(t, "the revoked token is refused", func() bool {
			return s.call("GET", "/v1/tasks?tag=order.mail", "", "Authorization", shop).status == 401
		})
	})
}

// polls begins a long poll by each of the protocols, on a fresh tag of its own, and returns their answers to come by the tags.
func (s *server) polls(fresh string, header ...string) map[string]<-chan answer {
	s.t.Helper()
	polls := map[string]<-chan answer{}
	for tag, c := range map[string][3]string{
		"one": {"POST", "/v1/tags/TAG/pop?wait=50s&max=5"}, "many": {"POST", "/v1/pop?tag=TAG&tag=more&wait=50s"},
		"get": {"GET", "/o/get?topic=TAG&wait=50000"}, "topics": {"POST", "/compat/topics", `{"command":"pop","topic":"TAG","wait":50,"max":5}`},
	} {
		tag = fresh + tag
		answered := make(chan answer, 1)
		polls[tag] = answered
		go func() {
			a, err := s.try(c[0], strings.ReplaceAll(c[1], "TAG", tag), strings.ReplaceAll(c[2], "TAG", tag), header...)
			if err != nil {
				a.text = err.Error()
			}
			answered <- a
		}()
	}
	eventually(s.t, "all of them wait", func() bool {
		nodes := s.call("GET", "/v1/nodes", "", header...).text
		return !slices.ContainsFunc(slices.Collect(maps.Keys(polls)), func(tag string) bool { return !strings.Contains(nodes, `"`+tag+`"`) })
	})
	return polls
}

func TestWaitingPopOfWhoMayNoLongerGetsNothing(t *testing.T) {
	each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db)
		f := func(may []string, polls map[string]<-chan answer) {
			t.Helper()
			for tag, poll := range polls {
				saved := as[wire.Saved](t, s.call("POST", "/v1/tasks", `{"tag":"`+tag+`"}`, may...), 201)
				if a := receive(t, poll, "the poll is answered"); a.status != 401 || a.header.Get("WWW-Authenticate") == "" ||
					strings.Contains(a.text, saved.ID.String()) {
					t.Errorf("%s is answered %d %s", tag, a.status, a.text)
				}
				again := as[wire.PopReply](t, s.call("POST", "/v1/tags/"+tag+"/pop?wait=20s", "", may...), 200)
				if p := again.Tasks[0]; p.ID != saved.ID || p.Attempt != 1 {
					t.Errorf("%s comes again as %+v", tag, p)
				}
			}
		}
		anonymous := s.polls("a.")
		admin := []string{"Authorization", token(t, db, "admin", "*", "all")}
		eventually(t, "a token is asked for", func() bool { return s.call("GET", "/v1/tags", "").status == 401 })
		f(admin, anonymous)

		worker := []string{"Authorization", token(t, db, "worker", "*", "work,operate")}
		eventually(t, "the token is known", func() bool { return s.call("GET", "/v1/nodes", "", worker...).status == 200 })
		revoked := s.polls("b.", worker...)
		if _, errs, code := run(t, environment(db), "token", "revoke", "worker"); code != 0 {
			t.Fatal(errs)
		}
		eventually(t, "the token is refused", func() bool { return s.call("GET", "/v1/nodes", "", worker...).status == 401 })
		f(admin, revoked)
	})
}

func TestBeyondLoopbackAServerWantsTokens(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	beyond := environment(db, "DELAYTASK_SERVER_LISTEN=:0")
	refused := func(want string, args ...string) {
		t.Helper()
		s := launch(t, beyond, args...)
		code, logged := s.end(), s.logged.String()
		if code != 1 || !strings.Contains(logged, want) || strings.Count(logged, "delaytask: ") != 1 {
			t.Errorf("%v: exit code %d, and it says %s", args, code, logged)
		}
	}
	refused("make one with: delaytask token create")
	refused("everybody could do everything", "--server-auth", "none")
	open := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_INSECURE=true")
	said := open.said.String()
	if !strings.HasPrefix(open.url, "http://127.0.0.1:") || !strings.Contains(said, "and at every other address of this machine") {
		t.Errorf("the server says %s", said)
	}
	if !strings.Contains(said, "names      localhost, every address; server.hosts adds names") {
		t.Errorf("the server says %s", said)
	}
	for host, status := range map[string]int{
		"": 200, "localhost": 200, "10.1.2.3:8080": 200, "[2001:db8::1]": 200, "evil.example": 421, "evil.example:80": 421, "10.1.2.3.evil": 421,
	} {
		open.host = host // a page may have a name of its own lead here, but not an address
		if a := open.call("GET", "/v1/stats", ""); a.status != status {
			t.Errorf("called as %q it answers %d %s", host, a.status, a.text)
		}
	}
	token(t, db, "a", "*", "all")
	s := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_HOSTS=localhost")
	if !strings.HasPrefix(s.url, "http://localhost:") {
		t.Errorf("the server says %s", s.said)
	}
	s.call("GET", "/v1/stats", "").wants(t, 401, wire.CodeUnauthorized)
}

func TestAServerAsksForTokensOnceThereAreAny(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db)
	s.call("GET", "/v1/stats", "").wants(t, 200, "")
	s.call("GET", "/o/get?topic=t", "").wants(t, 200, "")
	admin := token(t, db, "admin", "*", "all")
	eventually(t, "a token is asked for", func() bool { return s.call("GET", "/v1/stats", "").status == 401 })
	s.call("GET", "/o/get?topic=t", "").wants(t, 401, "")
	s.call("GET", "/v1/stats", "", "Authorization", admin).wants(t, 200, "")
	s.host = "evil.example"
	s.call("GET", "/v1/stats", "", "Authorization", admin).wants(t, 421, wire.CodeMisdirected)
}

func TestWebPagesStayOutside(t *testing.T) {
	t.Parallel()
	s := serve(t, dbtest.New(t, dbtest.SQLite))
	s.call("POST", "/v1/tasks", `{"tag":"t"}`, "Sec-Fetch-Site", "cross-site").wants(t, 403, wire.CodeCrossOrigin)
	s.call("POST", "/v1/tasks", `{"tag":"t"}`, "Origin", "https://evil.example").wants(t, 403, wire.CodeCrossOrigin)
	s.call("POST", "/o/add", `{"topic":"t"}`, "Origin", "https://evil.example").wants(t, 403, "")
	beyond := serve(t, dbtest.New(t, dbtest.SQLite), "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_INSECURE=true",
		"DELAYTASK_SERVER_HOSTS=127.0.0.1,known.example")
	for _, s := range []*server{s, beyond} {
		s.host = "evil.example"
		for _, path := range []string{"/v1/stats", "/metrics", "/docs"} {
			s.call("GET", path, "").wants(t, 421, wire.CodeMisdirected)
		}
		s.call("GET", "/o/get", "").wants(t, 421, "")
	}
	beyond.host = "KNOWN.example:1"
	beyond.call("GET", "/v1/stats", "").wants(t, 200, "")
}

func TestGetsThatTakeJobsAreOffWhereBrowsersDoNotSayWhichPageAsks(t *testing.T) {
	t.Parallel()
	const get, complete = "/o/get?topic=t", "/o/complete?topic=t&id=1"
	loopback := serve(t, dbtest.New(t, dbtest.SQLite), "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_INSECURE=true",
		"DELAYTASK_SERVER_HOSTS=localhost")
	named := serve(t, dbtest.New(t, dbtest.SQLite), "DELAYTASK_SERVER_HOSTS=Tasks.example")
	db := dbtest.New(t, dbtest.SQLite)
	asking := serve(t, db, "DELAYTASK_SERVER_AUTH=token", "DELAYTASK_SERVER_GET_TOPICS=t,u.*")
	admin := []string{"Authorization", token(t, db, "admin", "*", "all")}
	eventually(t, "the token is known", func() bool { return asking.call("GET", "/v1/stats", "", admin...).status == 200 })
	for s, says := range map[*server]string{
		loopback: "on: loopback names alone", named: "off: any web page", asking: "on for t, u.*, with a token or the header Delaytask-Client",
	} {
		if said := s.said.String(); !strings.Contains(said, "GET /o/…   "+says) {
			t.Errorf("the server says %s", said)
		}
	}
	for _, path := range []string{get, complete} {
		loopback.call("GET", path, "").wants(t, 200, "")
		named.call("GET", path, "").wants(t, 403, "")
		asking.call("GET", path, "", admin...).wants(t, 200, "")
		asking.call("GET", strings.Replace(path, "topic=t", "topic=other", 1), "", admin...).wants(t, 403, "")
		asking.call("GET", path, "", append(admin, "User-Agent", "Mozilla/5.0")...).wants(t, 403, "")
	}
}
