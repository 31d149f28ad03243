package dashboard_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// site is a dashboard with a user, who may be changed.
type site struct {
	*scheduler.Scheduler
	t    *testing.T
	h    http.Handler
	user dashboard.User
	err  error
	dsn  string
	jar  sync.Map // what the pages have set: *http.Cookie by name
}

var admin = dashboard.User{Name: "ann", Role: dashboard.Admin, Tags: []string{"*"}}

func open(t *testing.T, change ...func(*dashboard.Options)) *site {
	t.Helper()
	return openOn(t, dbtest.New(t, dbtest.SQLite), change...)
}

func openOn(t *testing.T, d dbtest.Database, change ...func(*dashboard.Options)) *site {
	t.Helper()
	s := &site{Scheduler: servertest.Open(t, d.DSN, scheduler.Config{NodeName: "blue"}), t: t, user: admin, dsn: d.DSN}
	o := dashboard.Options{
		Who: func(*http.Request) (dashboard.User, error) { return s.user, s.err },
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	h, err := dashboard.New(s.Scheduler, o)
	servertest.OK(t, err)
	s.h = h
	return s
}

// answer is what a browser gets.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) do(method, target string, form url.Values, header ...string) answer {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, body)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	s.jar.Range(func(_, cookie any) bool {
		r.AddCookie(cookie.(*http.Cookie))
		return true
	})
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		if s.jar.Delete(cookie.Name); cookie.MaxAge > 0 {
			s.jar.Store(cookie.Name, cookie)
		}
	}
	return answer{w.Code, w.Header(), w.Body.String()}
}

func (s *site) get(target string, header ...string) answer {
	return s.do(http.MethodGet, target, nil, header...)
}

func (s *site) post(target string, form url.Values, header ...string) answer {
	if form == nil {
		form = url.Values{}
	}
	return s.do(http.MethodPost, target, form, header...)
}

// has reports parts of a page that are missing.
func (a answer) has(t *testing.T, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %.2000s", a.status, status, a.body)
	}
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
}

// save saves a task that is due in an hour.
func (s *site) save(tag string, options ...delaytask.Option) int64 {
	s.t.Helper()
	id, err := s.SaveDelayTask(s.t.Context(), tag, `{"order":"number-4711"}`, time.Hour, options...)
	servertest.OK(s.t, err)
	return id
}

func (s *site) status(id int64) delaytask.Status {
	s.t.Helper()
	task, err := s.Get(s.t.Context(), delaytask.ID(id))
	servertest.OK(s.t, err)
	return task.Status
}
