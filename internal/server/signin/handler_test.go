package signin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table has tokens and sessions, and returns an error while it is away. Its clock is far from ours.
type table struct {
	mu       sync.Mutex
	tokens   []row.AccessToken
	sessions map[[32]byte]row.Session
	err      error
	began    time.Time
	reads    int // of sessions
	hang     chan struct{}
	slow     time.Duration // how long a reading of sessions takes
}

var errAway = errors.New("connection refused")

func (d *table) now() row.Time {
	return row.At(time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)).Add(time.Since(d.began))
}

func (d *table) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *table) AccessTokens(context.Context) ([]row.AccessToken, row.Reading, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.tokens), row.Reading{Time: d.now()}, d.err
}

func (d *table) CreateSession(_ context.Context, s row.Session, life time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		s.Expires = d.now().Add(life)
		d.sessions[s.Hash] = s
	}
	return d.err
}

func (d *table) Sessions(ctx context.Context, hashes [][32]byte) (found []row.Session, now row.Reading, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.slow > 0 {
		d.mu.Unlock()
		time.Sleep(d.slow)
		d.mu.Lock()
	}
	if hang := d.hang; hang != nil {
		d.mu.Unlock()
		select {
		case <-hang:
		case <-ctx.Done():
		}
		d.mu.Lock()
		if ctx.Err() != nil {
			return nil, row.Reading{}, ctx.Err()
		}
	}
	for _, hash := range hashes {
		if s, there := d.sessions[hash]; there && d.err == nil {
			found = append(found, s)
		}
	}
	return found, row.Reading{Time: d.now()}, d.err
}

func (d *table) DeleteSession(_ context.Context, hash [32]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		delete(d.sessions, hash)
	}
	return d.err
}

// site is a Handler before a page that names its caller and its path.
type site struct {
	*testing.T
	*table
	handler *Handler
	logged  *servertest.Log
	secret  string // of the token "ops"
}

func newSite(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	s := &site{T: t, table: &table{sessions: map[[32]byte]row.Session{}, began: time.Now()}, logged: &servertest.Log{}}
	s.secret = s.grant("ops")
	c := Config{
		Store: s.table, Tokens: access.NewTokens(s.table), Log: slog.New(slog.NewTextHandler(s.logged, nil)),
		Pages: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := access.From(r.Context())
			_, _ = fmt.Fprintf(w, "page %s for %s, who may change: %t", r.URL.Path, c.Name(), c.SomeTag(access.Change))
		}),
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	s.handler, err = New(c)
	servertest.OK(t, err)
	return s
}

// grant makes a token, and revokes the one that has its name.
func (s *site) grant(name string) (secret string) {
	s.Helper()
	secret, token, err := access.New(name, []string{"*"}, []access.Verb{access.All}, 0)
	servertest.OK(s.T, err)
	s.set(func() {
		s.tokens = slices.DeleteFunc(s.tokens, func(t row.AccessToken) bool { return t.Name == name })
		s.tokens = append(s.tokens, token)
	})
	return secret
}

const https = "https://tasks.example.com"

// send sends a request as a browser does. Headers come in pairs and replace the browser's; an empty one is not
// sent.
func (s *site) send(method, at, body string, header ...string) *http.Response {
	s.Helper()
	r := httptest.NewRequest(method, at, strings.NewReader(body))
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	if r.URL.Scheme == "https" {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for pair := range slices.Chunk(header, 2) {
		switch {
		case pair[1] == "":
			r.Header.Del(pair[0])
		case pair[0] == "Host":
			r.Host = pair[1]
		case pair[0] == "Remote":
			r.RemoteAddr = pair[1]
		default:
			r.Header.Add(pair[0], pair[1])
			if pair[0] != "Cookie" && pair[0] != "X-Forwarded-For" {
				r.Header.Set(pair[0], pair[1])
			}
		}
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result()
}

func text(res *http.Response) string {
	var b strings.Builder
	_ = res.Write(&b) // of a recorder
	return b.String()
}

func form(token, next string) string { return url.Values{"token": {token}, "next": {next}}.Encode() }

// signIn returns the header of a new session.
func (s *site) signIn(secret string, header ...string) []string {
	s.Helper()
	res := s.send("POST", https+"/ui/login", form(secret, ""), header...)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		s.Fatalf("the login is answered %s", text(res))
	}
	return []string{"Cookie", Cookie + "=" + res.Cookies()[0].Value}
}

// isIn wants a page for the session, or the way to the login.
func (s *site) isIn(session []string, want bool) {
	s.Helper()
	res := s.send("GET", https+"/ui/tasks", "", session...)
	got := text(res)
	if in := res.StatusCode == 200 && strings.Contains(got, "page /tasks for ops"); in != want ||
		!want && (res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "login?next=tasks") {
		s.Fatalf("is in: %t, want %t\n%s", in, want, got)
	}
}

func TestALoginLeadsToThePageThatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		res := s.send("GET", https+"/ui/tags/a%2Fb/c?status=failed&due_from=%2B1", "")
		const wantLogin = "../../login?next=tags%2Fa%252Fb%2Fc%3Fstatus%3Dfailed%26due_from%3D%252B1"
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != wantLogin {
			t.Fatalf("led to %d %s", res.StatusCode, res.Header.Get("Location"))
		}
		res = s.send("GET", https+"/ui/login?next=tags%2Fa%252Fb%2Fc%3Fstatus%3Dfailed", "")
		page := text(res)
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Referrer-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		for _, want := range []string{`value="tags/a%2Fb/c?status=failed"`, `<label for="token">Access token</label>`,
			`autocomplete="off"`, `href="static/style.css"`, `<html lang="en"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %s:\n%s", want, page)
			}
		}
		if regexp.MustCompile(`(?i)<script|<style| style=| on[a-z]+=`).MatchString(page) {
			t.Errorf("the page has a style or a script of its own:\n%s", page)
		}
		res = s.send("POST", https+"/ui/login", form(" "+s.secret+"\n", "tags/a%2Fb/c?status=failed"))
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "./tags/a%2Fb/c?status=failed" {
			t.Errorf("the login leads to %s", text(res))
		}
		cookie := regexp.MustCompile(`^__Host-delaytask=[\w-]{43}; Path=/; HttpOnly; Secure; SameSite=Lax$`)
		if got := res.Header.Values("Set-Cookie"); len(got) != 1 || !cookie.MatchString(got[0]) {
			t.Errorf("the cookie is %q", got)
		}
		session := []string{"Cookie", Cookie + "=" + res.Cookies()[0].Value}
		s.isIn(session, true)
		res = s.send("GET", https+"/ui/login?next=load", "", session...)
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "./load" {
			t.Errorf("signed in already: %s", text(res))
		}
	})
}

func TestOnlyACookieThatWasGivenLetsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		session := s.signIn(s.secret)
		value := strings.TrimPrefix(session[1], Cookie+"=")
		hash := sha256.Sum256([]byte(value))
		if got := slices.Collect(maps.Keys(s.sessions)); len(got) != 1 || got[0] != hash {
			t.Fatalf("stored is %x", got)
		}
		token := sha256.Sum256([]byte(s.secret))
		for _, wrong := range []string{
			"", "x", value + "A", value[1:], strings.Repeat("A", 43), s.secret, fmt.Sprintf("%x", hash),
			hashed(hash), hashed(token), value + "; " + Cookie + "=" + strings.Repeat("A", 43),
		} {
			s.isIn([]string{"Cookie", Cookie + "=" + wrong}, false)
		}
		s.isIn([]string{"Cookie", "delaytask=" + value}, false)
		s.isIn([]string{"Authorization", "Bearer " + s.secret}, false)
		s.isIn(session, true)
		if strings.Contains(s.logged.String(), value) || strings.Contains(s.logged.String(), s.secret) {
			t.Errorf("a secret is logged:\n%s", s.logged)
		}
	})
}

func TestRequestsWithoutASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		for _, tt := range []struct {
			method, path string
			header       []string
			status       int
			says         string
		}{
			{"GET", "/ui/", nil, 303, "Location: login\r\n"},
			{"HEAD", "/ui/", nil, 303, "Location: login\r\n"},
			{"GET", "/ui/", []string{"HX-Request", "true"}, 401, `href="login"`},
			{"POST", "/ui/tasks/5/cancel", nil, 401, `href="../../login"`},
			{"DELETE", "/ui/tasks", nil, 401, "You are not signed in"},
			{"GET", "/ui/static/app.css", nil, 200, "page /static/app.css for , who may change: false"},
			{"POST", "/ui/static/app.css", nil, 401, ""},
			{"GET", "/ui/static/../tasks", nil, 303, ""},
			{"PUT", "/ui/login", nil, 405, "Allow: GET, POST"},
			{"GET", "/ui/logout", nil, 405, "Allow: POST"},
			{"POST", "/ui/logout", nil, 303, "Location: login\r\n"},
		} {
			path := strings.ReplaceAll(tt.path, "/static/..", "") // the API answers such a path itself
			res := s.send(tt.method, https+path, "", tt.header...)
			if got := text(res); res.StatusCode != tt.status || !strings.Contains(got, tt.says) {
				t.Errorf("%s %s: %s", tt.method, tt.path, got)
			}
		}
	})
}

func TestASessionEnds(t *testing.T) {
	for name, end := range map[string]func(s *site, session []string){
		"with its token": func(s *site, session []string) {
			s.set(func() { s.tokens = nil })
			time.Sleep(2*time.Second - time.Millisecond)
			s.isIn(session, true)
			time.Sleep(time.Millisecond)
		},
		"with its token, whose name another one has": func(s *site, _ []string) {
			s.grant("ops")
			time.Sleep(2 * time.Second)
		},
		"when its row is gone": func(s *site, _ []string) {
			s.set(func() { clear(s.sessions) })
			time.Sleep(2 * time.Second)
		},
		"after 12 hours": func(s *site, session []string) {
			time.Sleep(12*time.Hour - time.Millisecond)
			s.isIn(session, true)
			time.Sleep(time.Millisecond)
		},
		"after 12 hours, while the database is away": func(s *site, session []string) {
			time.Sleep(12*time.Hour - time.Minute)
			s.isIn(session, true)
			s.set(func() { s.err = errAway })
			time.Sleep(time.Minute)
		},
		"by a logout": func(s *site, session []string) {
			res := s.send("POST", https+"/ui/logout", "", session...)
			gone := res.Cookies()
			if res.StatusCode != 303 || len(gone) != 1 || gone[0].MaxAge != -1 || gone[0].Name != Cookie ||
				!gone[0].Secure {
				s.Errorf("the logout: %s", text(res))
			}
			if len(s.sessions) != 0 {
				s.Error("the row is still there")
			}
		},
		"by another login of its browser": func(s *site, session []string) {
			next := s.signIn(s.secret, session...)
			if len(s.sessions) != 1 || next[1] == session[1] {
				s.Errorf("there are %d sessions", len(s.sessions))
			}
			s.isIn(next, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				session := s.signIn(s.secret)
				s.isIn(session, true)
				end(s, session)
				s.isIn(session, false)
				s.set(func() { s.err = errAway }) // it does not come back
				if res := s.send("GET", https+"/ui/", "", session...); res.StatusCode == 200 {
					s.Error("it is good again while the database is away")
				}
			})
		})
	}
}

func TestSessionsGoOnWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		session, other := s.signIn(s.secret), s.signIn(s.secret)
		s.isIn(session, true)
		s.set(func() { s.err = errAway })
		time.Sleep(2 * time.Second)
		for range 100 {
			s.isIn(session, true)
		}
		if s.reads != 2 {
			t.Errorf("a database that is away was asked %d times within a second, want once", s.reads-1)
		}
		away := func(session []string) {
			t.Helper()
			for _, path := range []string{"/ui/", "/ui/login"} {
				res := s.send("GET", https+path, "", session...)
				if got := text(res); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" ||
					!strings.Contains(got, "does not answer") || strings.Contains(got, "refused") {
					t.Fatalf("answered %s", got)
				}
			}
		}
		away(other) // it was never read
		time.Sleep(5*time.Minute - 2*time.Second - time.Millisecond)
		s.isIn(session, true)
		time.Sleep(time.Millisecond)
		away(session)
		value := strings.TrimPrefix(session[1], Cookie+"=")
		if err := one(s.handler.sessions.find(t.Context(), value)); !errors.Is(err, errAway) {
			t.Errorf("the session is found, %v", err)
		}
		res := s.send("POST", https+"/ui/logout", "", session...)
		if got := text(res); res.StatusCode != 503 || !strings.Contains(got, "could not be deleted") {
			t.Errorf("the logout: %s", got)
		}
		s.set(func() { s.err = nil })
		s.isIn(session, true)
		s.isIn(other, true)
		if n := strings.Count(s.logged.String(), "cannot be checked"); n != 2 { // one a second
			t.Errorf("%d lines:\n%s", n, s.logged)
		}
	})
}

func TestADatabaseThatHangsHoldsNoRequestForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		session := s.signIn(s.secret)
		s.isIn(session, true)
		s.set(func() { s.hang = make(chan struct{}) })
		time.Sleep(fresh)
		for _, want := range []time.Duration{patience, 0, 0} {
			began := time.Now()
			if s.isIn(session, true); time.Since(began) != want {
				t.Errorf("a request took %v, want %v", time.Since(began), want)
			}
		}
		time.Sleep(readTimeout)
		s.set(func() { s.reads = 0 })
		var requests sync.WaitGroup
		for n := range 50 { // made-up cookies share two readers, and each of their readings
			cookie := Cookie + "=" + hashed(sha256.Sum256([]byte{byte(n)}))
			requests.Go(func() { s.send("GET", https+"/ui/", "", "Cookie", cookie) })
		}
		synctest.Wait()
		if s.reads < 1 || s.reads > readers {
			t.Errorf("%d reads at once", s.reads)
		}
		close(s.hang)
		requests.Wait()
	})
}

func TestSessionsInUseAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		const viewers = 100
		var sessions [][]string
		for range viewers {
			sessions = append(sessions, s.begin())
		}
		turn := func() {
			for _, session := range sessions {
				s.isIn(session, true)
				time.Sleep(5 * time.Second / viewers)
			}
		}
		turn()
		s.set(func() { s.reads = 0 })
		for range 12 {
			turn()
		}
		if most := int(time.Minute/fresh) + 1; s.reads > most {
			t.Errorf("%d people cost %d reads in a minute, want at most %d", viewers, s.reads, most)
		}
		s.set(func() { clear(s.sessions) })
		time.Sleep(fresh)
		for _, session := range sessions {
			s.isIn(session, false)
		}
	})
}

// begin returns the cookie of a session past the limit of logins.
func (s *site) begin() []string {
	s.Helper()
	cookie, err := s.handler.sessions.begin(s.Context(), "ops", sha256.Sum256([]byte(s.secret)))
	servertest.OK(s, err)
	return []string{"Cookie", Cookie + "=" + cookie}
}

func TestFewSessionsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		for range mostSessions + 50 {
			s.isIn(s.begin(), true)
			time.Sleep(time.Millisecond)
		}
		if n := len(s.handler.sessions.known); n != mostSessions {
			t.Errorf("%d are remembered", n)
		}
	})
}

func TestWhereNoTokensAreAskedForThereIsNoLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := newSite(t, func(c *Config) { c.Tokens = nil })
		later := newSite(t)
		later.handler.cfg.Tokens = access.NewTokensOnceThereAreAny(later.table)
		had := later.tokens
		later.set(func() { later.tokens = nil })
		for _, s := range []*site{never, later} {
			if got := text(s.send("GET", "http://localhost/ui/tasks", "")); !strings.Contains(got,
				"page /tasks for , who may change: true") {
				t.Errorf("without tokens: %s", got)
			}
			for _, method := range []string{"GET", "POST"} {
				if res := s.send(method, "http://localhost/ui/login?next=load", "next=load"); res.StatusCode != 303 ||
					res.Header.Get("Location") != "./load" || len(res.Cookies()) > 0 {
					t.Errorf("the login: %s", text(res))
				}
			}
		}
		later.set(func() { later.tokens = had })
		time.Sleep(2 * time.Second)
		later.isIn(nil, false)
	})
}

func TestReadOnlyTakesAwayWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(c *Config) { c.ReadOnly = true })
		got := text(s.send("GET", https+"/ui/tasks", "", s.signIn(s.secret)...))
		if !strings.Contains(got, "for ops, who may change: false") {
			t.Error(got)
		}
	})
}

func TestALoginThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		const wrong = "dt_wrongwrongwrongwrongwrongwrongwrongwrongwro"
		f := func(status int, says, body string, header ...string) {
			t.Helper()
			res := s.send("POST", https+"/ui/login", body, header...)
			got := text(res)
			if res.StatusCode != status || !strings.Contains(got, says) || len(res.Cookies()) > 0 ||
				strings.Contains(got, wrong) || strings.Contains(got, s.secret) {
				t.Errorf("%.80s: %s", body, got)
			}
		}
		f(401, "or has expired.</p>", form(wrong, "tasks"))
		f(401, `aria-describedby="problem make" aria-invalid="true"`, form(wrong, "tasks"))
		f(401, "令牌不存在", form("", ""), "Accept-Language", "fr, zh-CN;q=0.9, en;q=0.5")
		f(401, `value="tasks?a=&lt;b&gt;`, form(wrong, "tasks?a=<b>"))
		f(400, "not the form", form(s.secret, ""), "Content-Type", "text/plain")
		f(400, "not the form", `{"token":"`+s.secret+`"}`, "Content-Type", "application/json")
		f(400, "not the form", "token=%zz"+s.secret)
		f(400, "not the form", form(s.secret, strings.Repeat("x", mostForm)))
		if res := s.send("POST", https+"/ui/login?token="+s.secret, ""); res.StatusCode != 401 {
			t.Errorf("a token in the address: %d", res.StatusCode)
		}
		servertest.OK(t, one(s.handler.cfg.Tokens.Check(t.Context(), s.secret)))
		s.set(func() { s.err = errAway })
		f(503, "The session cannot be stored. The database does not answer.", form(s.secret, ""))
		if strings.Contains(s.logged.String(), wrong) || strings.Contains(s.logged.String(), s.secret) {
			t.Errorf("a token is logged:\n%s", s.logged)
		}
	})
}

func one[A any](_ A, err error) error { return err }

func hashed(hash [32]byte) string { return base64.RawURLEncoding.EncodeToString(hash[:]) }
