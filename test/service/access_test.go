package service

import (
	"crypto/rand"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// token makes one, which a running server knows within seconds, and returns the header that sends it.
func token(t *testing.T, db dbtest.Database, name, tags, verbs string) (header []string) {
	t.Helper()
	out, errs, code := run(t, environment(db), "token", "create", name, "--tags", tags, "--verbs", verbs)
	if code != 0 {
		t.Fatalf("token create: %d, %s", code, errs)
	}
	return []string{"Authorization", "Bearer " + strings.TrimSpace(out)}
}

func revoke(t *testing.T, db dbtest.Database, name string) {
	t.Helper()
	if _, errs, code := run(t, environment(db), "token", "revoke", name); code != 0 {
		t.Fatal(errs)
	}
}

// becomes waits until the request is answered with the status.
func (s *server) becomes(status int, method, path string, header ...string) {
	s.TB.Helper()
	servertest.Eventually(s.TB, method+" "+path+" is answered otherwise", func() bool {
		return s.Call(method, path, "", header...).Status == status
	})
}

func TestTokensDecideTheRightsOfCallers(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db, "DELAYTASK_SERVER_AUTH=token")
		if !strings.Contains(s.Out.String(), "asked for; make one with: delaytask token create") {
			t.Errorf("the server says %s", s.Out)
		}
		shop, prometheus := token(t, db, "shop", "order.*", "save,read"), token(t, db, "prometheus", "*", "metrics")
		s.becomes(200, "GET", "/v1/tasks?tag=order.mail", shop...)
		s.Want(401, wire.CodeUnauthorized, "POST", "/v1/tasks", `{"tag":"order.mail"}`)
		s.Want(401, "", "POST", "/compat/topics", `{}`)
		s.Want(201, "", "POST", "/v1/tasks", `{"tag":"order.mail"}`, shop...)
		s.Want(403, wire.CodeForbidden, "POST", "/v1/tasks", `{"tag":"bill"}`, shop...)
		s.Want(403, wire.CodeForbidden, "POST", "/v1/tags/order.mail/pop", "", shop...)
		s.becomes(200, "GET", "/metrics", prometheus...)
		// Not every request has a line.
		servertest.Eventually(t, "the log names the token that has read the metrics", func() bool {
			return s.Call("GET", "/metrics", "", prometheus...).Status == 200 &&
				strings.Contains(s.Err.String(), " token=prometheus")
		})
		s.Want(401, wire.CodeUnauthorized, "GET", "/metrics", "")
		revoke(t, db, "shop")
		s.becomes(401, "GET", "/v1/tasks?tag=order.mail", shop...)
	})
}

// polls begins a long poll by each of the protocols, each on a fresh tag, and returns channels of their answers by tag.
func (s *server) polls(fresh string, header ...string) map[string]<-chan servertest.Answer {
	s.TB.Helper()
	polls := map[string]<-chan servertest.Answer{}
	for tag, c := range map[string][3]string{
		"one": {"POST", "/v1/tags/TAG/pop?wait=50s&max=5"}, "many": {"POST", "/v1/pop?tag=TAG&tag=more&wait=50s"},
		"get":    {"GET", "/o/get?topic=TAG&wait=50000"},
		"topics": {"POST", "/compat/topics", `{"command":"pop","topic":"TAG","wait":50,"max":5}`},
	} {
		tag = fresh + tag
		answered := make(chan servertest.Answer, 1)
		polls[tag] = answered
		go func() {
			a, err := s.Try(c[0], strings.ReplaceAll(c[1], "TAG", tag), strings.ReplaceAll(c[2], "TAG", tag), header...)
			if err != nil {
				a.Text = err.Error()
			}
			answered <- a
		}()
	}
	servertest.Eventually(s.TB, "all of them wait", func() bool {
		nodes := s.Call("GET", "/v1/nodes", "", header...).Text
		return !slices.ContainsFunc(slices.Collect(maps.Keys(polls)),
			func(tag string) bool { return !strings.Contains(nodes, `"`+tag+`"`) })
	})
	return polls
}

func TestWaitingPopOfACallerThatLostItsRightsGetsNothing(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db)
		f := func(may []string, polls map[string]<-chan servertest.Answer) {
			t.Helper()
			for tag, poll := range polls {
				saved := servertest.Ask[wire.Saved](&s.Client, 201, "POST", "/v1/tasks", `{"tag":"`+tag+`"}`, may...)
				if a := servertest.Receive(t, poll, "the poll is answered"); a.Status != 401 ||
					a.Header.Get("WWW-Authenticate") == "" ||
					strings.Contains(a.Text, saved.ID.String()) {
					t.Errorf("%s is answered %d %s", tag, a.Status, a.Text)
				}
				again := servertest.Ask[wire.PopReply](&s.Client, 200, "POST", "/v1/tags/"+tag+"/pop?wait=20s", "",
					may...)
				if p := again.Tasks[0]; p.ID != saved.ID || p.Attempt != 1 {
					t.Errorf("%s comes again as %+v", tag, p)
				}
			}
		}
		anonymous := s.polls("a.")
		admin := token(t, db, "admin", "*", "all") // tokens are required from the first one on
		s.becomes(401, "GET", "/v1/tags")
		f(admin, anonymous)
		s.Host = "evil.example"
		s.Want(421, wire.CodeMisdirected, "GET", "/v1/tags", "", admin...)
		s.Host = ""

		worker := token(t, db, "worker", "*", "work,operate")
		s.becomes(200, "GET", "/v1/nodes", worker...)
		revoked := s.polls("b.", worker...)
		revoke(t, db, "worker")
		s.becomes(401, "GET", "/v1/nodes", worker...)
		f(admin, revoked)
	})
}

func TestBeyondLoopbackAServerWantsTokens(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	f := func(s *server, url string, says ...string) {
		t.Helper()
		if !strings.HasPrefix(s.URL, url) {
			t.Errorf("it is at %s", s.URL)
		}
		for _, want := range says {
			if said := s.Out.String(); !strings.Contains(said, want) {
				t.Errorf("the server says %s, want %q", said, want)
			}
		}
	}
	open := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_INSECURE=true")
	f(open, "http://127.0.0.1:", "and at every other address of this machine", "GET /o/…   off: any web page",
		"names      localhost, every address; server.hosts adds names")
	for host, status := range map[string]int{"": 200, "10.1.2.3:8080": 200, "evil.example:80": 421} {
		open.Host = host // a page may have a name of its own lead here, but not an address
		if a := open.Call("GET", "/v1/stats", ""); a.Status != status {
			t.Errorf("called as %q it answers %d %s", host, a.Status, a.Text)
		}
	}
	known := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_INSECURE=true",
		"DELAYTASK_SERVER_HOSTS=127.0.0.1,known.example")
	known.Host = "evil.example"
	for _, path := range []string{"/v1/stats", "/metrics", "/docs"} {
		known.Want(421, wire.CodeMisdirected, "GET", path, "")
	}
	known.Want(421, "", "GET", "/o/get", "")
	known.Host = "KNOWN.example:1"
	known.Want(200, "", "GET", "/v1/stats", "")

	s := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_SERVER_HOSTS=localhost")
	f(s, "http://localhost:")
	s.Want(401, wire.CodeUnauthorized, "GET", "/v1/stats", "")
}

const tokenless = `level=WARN msg="every request is refused until there is a token"`

// lacksToken waits until a server that is ready otherwise says so.
func (s *server) lacksToken() (says string) {
	s.TB.Helper()
	servertest.Eventually(s.TB, "it says that there is no token", func() bool {
		a := s.Call("GET", "/readyz", "")
		says = a.Detail
		return a.Status == 503 && a.Code == wire.CodeNotReady && strings.HasPrefix(says, "no token yet: ")
	})
	return says
}

func TestAServerWithoutATokenIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db, "DELAYTASK_SERVER_LISTEN=:0")
	s.Want(200, "", "GET", "/healthz", "")
	s.Want(401, wire.CodeUnauthorized, "GET", "/v1/stats", "")
	says := s.lacksToken()
	for _, want := range []string{"DELAYTASK_BOOTSTRAP_TOKEN ", "DELAYTASK_BOOTSTRAP_TOKEN_FILE ",
		"delaytask token create admin"} {
		if !strings.Contains(says, want) {
			t.Errorf("it says %q, without %q", says, want)
		}
	}
	if logged := s.Err.String(); strings.Count(logged, says) != 1 || strings.Count(logged, tokenless) != 1 {
		t.Errorf("the log says %s", logged)
	}
	admin := token(t, db, "admin", "*", "all")
	s.becomes(200, "GET", "/readyz")
	s.becomes(200, "GET", "/v1/stats", admin...)
	revoke(t, db, "admin")
	s.becomes(401, "GET", "/v1/stats", admin...)
	s.becomes(200, "GET", "/readyz") // a token that is exchanged takes no server out of service
}

// first is a token of a random source, and its header.
func first() (secret string, header []string) {
	secret = rand.Text()
	return secret, []string{"Authorization", "Bearer " + secret}
}

func TestServersThatStartTogetherStoreOneFirstToken(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		secret, boot := first()
		file := filepath.Join(t.TempDir(), "token")
		servertest.OK(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
		var servers []*server
		for _, given := range []string{"=" + secret, "_FILE=" + file, "=" + secret} {
			servers = append(servers, launch(t, environment(db, "DELAYTASK_SERVER_LISTEN=:0",
				"DELAYTASK_BOOTSTRAP_TOKEN"+given)))
		}
		for _, s := range servers {
			s.serves()
			s.becomes(200, "GET", "/readyz")
			s.Want(201, "", "POST", "/v1/tasks", `{"tag":"a"}`, boot...)
			said := s.Out.String() + s.Err.String()
			if strings.Contains(said, secret) || strings.Contains(said, tokenless) {
				t.Errorf("it says %s", said)
			}
		}
		var entries struct {
			Entries []struct{ Target, Outcome, Detail string }
		}
		servers[0].Want(200, "", "GET", "/v1/audit?action=token.create", "", boot...).Read(t, &entries)
		done := 0
		for _, e := range entries.Entries {
			if e.Outcome == "done" && e.Detail == "verbs=bootstrap tags=*" {
				done++
			}
		}
		if done != 1 {
			t.Errorf("the audit log has %+v", entries)
		}
	})
}

func TestAFirstTokenThatHasEndedStaysRefused(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		starts := func(secret string) *server {
			t.Helper()
			return serve(t, db, "DELAYTASK_SERVER_LISTEN=:0", "DELAYTASK_BOOTSTRAP_TOKEN="+secret)
		}
		named := regexp.MustCompile(`(?m)^bootstrap-\w+ +\* +bootstrap .* never$`)
		name := func() string {
			t.Helper()
			out, _, _ := run(t, environment(db), "token", "list")
			found := named.FindAllString(out, -1)
			if len(found) != 1 {
				t.Fatalf("%d bootstrap tokens are good:\n%s", len(found), out)
			}
			return strings.Fields(found[0])[0]
		}
		refused := func(s *server, boot []string) {
			t.Helper()
			s.becomes(401, "GET", "/v1/stats", boot...)
			if a := s.Want(401, wire.CodeUnauthorized, "GET", "/v1/stats", "", boot...); !strings.Contains(a.Detail,
				"bootstrap token has ended") {
				t.Errorf("it says %q", a.Detail)
			}
		}
		secret, boot := first()
		s := starts(secret)
		revoke(t, db, name())
		refused(s, boot)
		s.Stops()
		s = starts(secret)
		refused(s, boot)
		if logged := s.Err.String(); strings.Count(logged, "has ended and stays refused") != 1 {
			t.Errorf("the log says %s", logged)
		}
		s.lacksToken() // what has ended is no token
		s.Stops()

		secret, boot = first()
		s = starts(secret)
		name()
		orders := token(t, db, "orders", "order.*", "all")
		s.becomes(200, "GET", "/v1/tasks?tag=order.a", orders...)
		s.Want(200, "", "GET", "/v1/stats", "", boot...)
		token(t, db, "admin", "*", "all")
		refused(s, boot)
		revoke(t, db, "admin")
		out, _, _ := run(t, environment(db), "token", "list")
		if strings.Count(out, "(ended)") != 2 {
			t.Errorf("listed:\n%s", out)
		}
		s.Stops()
		refused(starts(secret), boot)
	})
}

func TestAFirstTokenThatIsNotRandomIsRefused(t *testing.T) {
	t.Parallel()
	s := launch(t, environment(dbtest.New(t, dbtest.SQLite), "DELAYTASK_BOOTSTRAP_TOKEN=change-me"))
	if code, logged := s.End(), s.Err.String(); code != 2 || !strings.Contains(logged, "openssl rand -base64 32") ||
		strings.Contains(logged, "change-me") {
		t.Errorf("exit code %d, and it says %s", code, logged)
	}
}
