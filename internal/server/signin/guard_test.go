package signin

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestALoginLeadsToAPageOfTheDashboardOnly(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"": "./", "/": "./", "/ui/": "./", "./": "./",
		"tasks": "./tasks", "/tasks": "./tasks", "/ui/tasks": "./tasks", "tags/": "./tags/",
		"tasks?status=failed&tag=a%2Fb": "./tasks?status=failed&tag=a%2Fb", "?span=1h": "./?span=1h",
		"tags/a%2Fb": "./tags/a%2Fb", "tags/a:b": "./tags/a:b", "tags/a%2F%2Fb": "./tags/a%2F%2Fb",
		"javascript:alert(1)": "./javascript:alert(1)", // below ./ it is a page that is not there
		"data:text/html,x":    "./data:text/html,x",
		"https:evil.example":  "./https:evil.example",
		"tasks?next=//evil":   "./tasks?next=//evil",

		"//evil.example": "", "///evil.example": "", "/ui//evil.example": "", "/ui///evil": "", "////": "",
		"https://evil.example": "", "http://evil.example/ui/": "", "//evil.example/ui/": "", "ftp://x": "",
		"\\\\evil.example": "", "/\\evil.example": "", "tasks\\..\\..": "", "/ui/\\evil": "",
		"/\t/evil.example": "", "\n//evil": "", "tasks\r\nSet-Cookie: a=b": "", "tasks\x00": "", " tasks": "",
		"..": "", "../docs": "", "/ui/../docs": "", "tasks/../../docs": "", "%2e%2e/docs": "", ".%2E/docs": "",
		"./tasks": "", "tasks/./x": "", "tasks//x": "", "%2": "", "tasks/%zz": "", "tasks#x": "",
		"é": "", "\u202etasks": "", "／／evil": "", "\x7f": "", "login": "", "/ui/login?next=login": "", "logout": "",
		strings.Repeat("x", mostNext+1): "",
	} {
		if want == "" {
			want = firstPage
		}
		if got := target(next); got != want {
			t.Errorf("%.60q leads to %.60q, want %q", next, got, want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, next := range []string{"tasks?a=b", "//evil", "/ui/../x", "a%2e%2e/b", "/ui/\\x", "a:b", "?//x"} {
		f.Add(next)
	}
	from, err := url.Parse("https://tasks.example.com/prefix/ui/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, next string) {
		to := target(next)
		u, err := from.Parse(to)
		if err != nil || u.Host != from.Host || u.Scheme != from.Scheme || u.User != nil ||
			!strings.HasPrefix(u.EscapedPath(), "/prefix/ui/") || strings.ContainsFunc(to, isUnsafe) {
			t.Errorf("%q leads to %q, which is %v (%v)", next, to, u, err)
		}
	})
}

func TestATokenIsTakenWhereTheBrowserKeepsTheSessionOnly(t *testing.T) {
	const public = "https://tasks.example.com"
	for _, tt := range []struct {
		public, at string
		header     []string
		taken      bool
	}{
		{"", "https://10.0.0.5:8443", nil, true},
		{"", "http://localhost:8080", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"", "http://127.0.0.1:8080", nil, true},
		{"", "http://[::1]:8080", nil, true},
		{"", "http://10.0.0.5:8080", nil, false},
		{"", "http://tasks.example.com", nil, false},
		{"", "http://localhost.example.com", nil, false},
		{"", "http://tasks.example.com", []string{"X-Forwarded-Proto", "https"}, false},
		{public, "http://tasks.example.com", nil, true}, // as the proxy passes it on
		{public, "http://upstream:8080", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{public, "http://10.0.0.5:8080", nil, false}, // around the proxy
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, func(c *Config) { c.PublicURL = tt.public })
			f := func(method, body string, status int) {
				t.Helper()
				res := s.send(method, tt.at+"/ui/login", body, tt.header...)
				got, says := text(res), "Set server.tls.cert"
				if tt.public != "" {
					says = `<a href="https://tasks.example.com/ui/">`
				}
				explained := strings.Contains(got, says) && !strings.Contains(got, "<form")
				if res.StatusCode != status || !tt.taken && !explained {
					t.Errorf("%s %s with %q: %s", method, tt.at, tt.public, got)
				}
			}
			f("GET", "", 200)
			status := http.StatusForbidden
			if tt.taken {
				status = http.StatusSeeOther
			}
			f("POST", form(s.secret, ""), status)
		})
	}
}

func TestAPostOfAnotherPageIsRefused(t *testing.T) {
	for _, tt := range []struct {
		at      string
		header  []string
		refused bool
	}{
		{"http://10.0.0.5:8080", nil, false},
		{"http://10.0.0.5:8080", []string{"Origin", ""}, true},
		{"http://10.0.0.5:8080", []string{"Origin", "null"}, true},
		{"http://10.0.0.5:8080", []string{"Origin", "http://10.0.0.5"}, true},
		{"http://10.0.0.5:8080", []string{"Origin", "http://evil.example"}, true},
		{"http://10.0.0.5:8080", []string{"Origin", "://"}, true},
		{"http://10.0.0.5:8080", []string{"Host", "upstream:8080"}, true},
		{"https://tasks.example.com", []string{"Host", "upstream:8080"}, false}, // http.CrossOriginProtection judges it
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, func(c *Config) { c.Tokens = nil })
			for _, path := range []string{"/ui/login", "/ui/logout", "/ui/tasks/5/cancel"} {
				for _, method := range []string{"POST", "DELETE"} {
					res := s.send(method, tt.at+path, "", tt.header...)
					if got := text(res); (res.StatusCode == 403) != tt.refused ||
						tt.refused && !strings.Contains(got, "pass the header Host on unchanged") {
						t.Errorf("%s %s%s %q: %s", method, tt.at, path, tt.header, got)
					}
				}
			}
			if res := s.send("GET", tt.at+"/ui/tasks", "", tt.header...); res.StatusCode != 200 {
				t.Errorf("a GET: %s", text(res))
			}
		})
	}
}

func TestLoginsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(c *Config) { c.Trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
		f := func(remote, forwarded string, wait string) {
			t.Helper()
			res := s.send("POST", https+"/ui/login", form("x", ""), "Remote", remote, "X-Forwarded-For", forwarded)
			want := http.StatusUnauthorized
			if wait != "" {
				want = http.StatusTooManyRequests
			}
			got := text(res)
			if res.StatusCode != want || res.Header.Get("Retry-After") != wait || !strings.Contains(got, "<form") {
				t.Fatalf("%s %s: want %d after %q\n%s", remote, forwarded, want, wait, got)
			}
		}
		for range mostOfOne {
			f("192.0.2.1:5000", "", "")
			time.Sleep(time.Second)
		}
		f("192.0.2.1:5001", "198.51.100.7", "50") // its header is worth nothing
		f("10.0.0.1:80", "192.0.2.1", "50")
		f("192.0.2.2:5000", "", "")
		time.Sleep(50 * time.Second)
		f("192.0.2.1:5000", "", "")
		f("192.0.2.1:5000", "", "1")
		time.Sleep(time.Minute)
		for n := range mostOfAll {
			f(fmt.Sprintf("192.0.2.%d:1", n), "", "")
		}
		f("192.0.2.200:1", "", "60")
		if n := len(s.handler.limiter.logins); n != mostOfAll {
			t.Errorf("%d logins are remembered", n)
		}
		if s.reads > 0 {
			t.Errorf("refused logins cost %d reads", s.reads)
		}
		time.Sleep(time.Minute)
		for n := range mostOfOne { // of one subnet
			f(fmt.Sprintf("[2001:db8::%d]:1", n), "", "")
		}
		f("[2001:db8::ffff]:1", "", "60")
		f("[2001:db8:0:1::1]:1", "", "")
	})
}

func TestARightTokenAlwaysEnters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		wrong := func(n int) *http.Response {
			return s.send("POST", https+"/ui/login", form("x", ""), "Remote", fmt.Sprintf("192.0.2.%d:1", n))
		}
		for n := range 2 * mostOfAll {
			wrong(n % 10)
		}
		if got := wrong(1); got.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("too many wrong tokens: %s", text(got))
		}
		if n := strings.Count(s.logged.String(), "was refused"); n > mostOfAll {
			t.Errorf("wrong tokens wrote %d lines", n)
		}
		for range 2 * mostOfToken {
			s.isIn(s.signIn(s.secret, "Remote", "192.0.2.1:1"), true)
		}
		if n := len(s.sessions); n != mostOfToken {
			t.Errorf("one token has %d sessions", n)
		}
	})
}

// 7,000 made-up cookies wait for their readings, of which the database serves 100 a second.
func TestMadeUpCookiesCloseTheLoginToNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.set(func() { s.slow = 10 * time.Millisecond })
		signedIn := s.signIn(s.secret)
		var wg sync.WaitGroup
		for n := range 7000 {
			made := hashed(sha256.Sum256([]byte{byte(n), byte(n >> 8)}))
			wg.Go(func() { s.isIn([]string{"Cookie", Cookie + "=" + made}, false) })
		}
		synctest.Wait()
		began := time.Now()
		s.isIn(signedIn, true)
		s.isIn(s.signIn(s.secret, "Cookie", Cookie+"="+hashed([32]byte{1})), true)
		other, err := newSessions(s.table).begin(t.Context(), "ops", sha256.Sum256([]byte(s.secret)))
		servertest.OK(t, err)
		s.isIn([]string{"Cookie", Cookie + "=" + other}, true) // another server has begun it
		if took := time.Since(began); took > time.Second {
			t.Errorf("a right token waited %v", took)
		}
		wg.Wait()
	})
}

func TestWhoSendsARequestIsSaidByTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, tt := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:80", nil, "192.0.2.1"},
		{"192.0.2.1:80", []string{"198.51.100.7"}, "192.0.2.1"},
		{"10.0.0.1:80", nil, "10.0.0.1"},
		{"10.0.0.1:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:80", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"}, // the first is made up
		{"10.0.0.1:80", []string{"203.0.113.9", "198.51.100.7 , 10.0.0.2"}, "198.51.100.7"},
		{"[::ffff:10.0.0.1]:80", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"[::1]:80", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"[::1]:80", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:80", []string{"198.51.100.7, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:80", []string{"198.51.100.7,"}, "10.0.0.1"},
		{"@", []string{"198.51.100.7"}, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
		if got := sender(r, trusted).String(); got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.remote, tt.forwarded, got, tt.want)
		}
	}
}

func TestTheLanguageIsTheBrowsers(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "en", "zh": "zh-CN", "zh-TW,en;q=0.8": "zh-CN", "en,zh": "en", "de, zh;q=0.3": "zh-CN", "de": "en",
		"en;q=0.2, ZH-hans;q=0.4": "zh-CN", "zh;q=0, en": "en", "zh;q=x": "en", ";;,,": "en", "*": "en",
	} {
		r := &http.Request{Header: http.Header{"Accept-Language": {header}}}
		if got := textsFor(r).Lang; got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
