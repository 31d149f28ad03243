package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
)

// Each action is tried by every role on a tag of its own and on a foreign one. A refused action changes nothing.
func TestEveryActionAsksForItsRight(t *testing.T) {
	t.Parallel()
	s := open(t)
	const own, foreign = "order.close", "mail.send"
	bulk := func(tag string) url.Values {
		return url.Values{"verb": {"cancel"}, "filter": {"status=pending&tag=" + tag},
			"as_of": {"2040-01-01T00:00:00Z"}, "wanted": {"1"}, "typed": {"1"}}
	}
	acts := []struct {
		name string
		form func(id int64, tag string) (path string, form url.Values)
		done int // status of success
	}{
		{"cancel", func(id int64, _ string) (string, url.Values) { return fmt.Sprintf("/tasks/%d/cancel", id), nil },
			http.StatusSeeOther},
		{"reschedule", func(id int64, _ string) (string, url.Values) {
			return fmt.Sprintf("/tasks/%d/reschedule", id), url.Values{"delay": {"2h"}}
		}, http.StatusSeeOther},
		{"body", func(id int64, _ string) (string, url.Values) {
			return fmt.Sprintf("/tasks/%d/body", id), url.Values{"body": {"x"}, "version": {"0"}}
		}, http.StatusSeeOther},
		{"show", func(id int64, _ string) (string, url.Values) { return fmt.Sprintf("/tasks/%d/show", id), nil },
			http.StatusOK},
		{"selected", func(id int64, _ string) (string, url.Values) {
			return "/tasks", url.Values{"id": {fmt.Sprint(id)}, "verb": {"cancel"}}
		}, http.StatusSeeOther},
		{"bulk", func(_ int64, tag string) (string, url.Values) { return "/bulk", bulk(tag) },
			http.StatusSeeOther},
	}
	for _, act := range acts {
		for _, role := range []dashboard.Role{"", dashboard.Viewer, dashboard.Operator, dashboard.Admin} {
			for _, tag := range []string{own, foreign} {
				id := s.save(tag)
				before, err := s.Get(t.Context(), delaytask.ID(id))
				if err != nil {
					t.Fatal(err)
				}
				s.user = dashboard.User{Name: "bob", Role: role, Tags: []string{"order.*"}}
				path, form := act.form(id, tag)
				got := s.post(path, form)
				after, err := s.Get(t.Context(), delaytask.ID(id))
				if err != nil {
					t.Fatal(err)
				}
				allowed := tag == own && (role == dashboard.Operator || role == dashboard.Admin)
				left := act.name == "selected" && strings.Contains(got.header.Get("Location"), "left=1")
				switch {
				case allowed && got.status != act.done:
					t.Errorf("%s by %q on %s: %d", act.name, role, tag, got.status)
				case !allowed && !left && got.status != http.StatusForbidden && got.status != http.StatusNotFound:
					t.Errorf("%s by %q on %s: %d, want a refusal", act.name, role, tag, got.status)
				case !allowed && (after.Version != before.Version || string(after.Body) != string(before.Body)):
					t.Errorf("%s by %q on %s was refused and has changed the task", act.name, role, tag)
				case tag == foreign && strings.Contains(got.body, "number-4711"):
					t.Errorf("%s by %q on %s shows the body", act.name, role, tag)
				}
			}
		}
	}
}

// The body of a task of the tag http names the address that is called. So a change takes the right that a save takes,
// and each body obeys the rules of its tag.
func TestABodyObeysTheRulesOfASave(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *dashboard.Options) {
		o.Check = func(tag string, body []byte) error {
			if strings.Contains(string(body), "blocked") {
				return fmt.Errorf("the tag %s takes no such body", tag)
			}
			return nil
		}
	})
	tags := []string{"http", "order.close"}
	operator := dashboard.User{Name: "bob", Role: dashboard.Operator, Tags: tags}
	caller := operator
	caller.Verbs = []string{"save_http"}
	for _, c := range []struct {
		user      dashboard.User
		tag, body string
		want      int
		says      string
	}{
		{operator, "http", "https://other.example/", http.StatusForbidden, "You may not do this"},
		{operator, "order.close", "other", http.StatusSeeOther, ""},
		{operator, "order.close", "blocked", http.StatusBadRequest, "the tag order.close takes no such body"},
		{caller, "http", "https://other.example/", http.StatusSeeOther, ""},
		{caller, "http", "https://blocked.example/", http.StatusBadRequest, "the tag http takes no such body"},
	} {
		id := s.save(c.tag)
		s.user = c.user
		shown := s.post(fmt.Sprintf("/tasks/%d/show", id), nil)
		if offered := strings.Contains(shown.body, "<textarea"); offered == (c.want == http.StatusForbidden) {
			t.Errorf("%+v: it is offered: %t", c, offered)
		}
		s.post(fmt.Sprintf("/tasks/%d/body", id), url.Values{"body": {c.body}, "version": {"0"}}).has(t, c.want, c.says)
		task, err := s.Get(t.Context(), delaytask.ID(id))
		if changed := string(task.Body) == c.body; err != nil || changed != (c.want == http.StatusSeeOther) {
			t.Errorf("%+v: the body is %s, %v", c, task.Body, err)
		}
	}
}

func TestAForeignTagDoesNotAppear(t *testing.T) {
	t.Parallel()
	s := open(t)
	own, foreign := s.save("order.close"), s.save("mail.send")
	s.user = dashboard.User{Name: "bob", Role: dashboard.Operator, Tags: []string{"order.*"}}
	s.get(fmt.Sprintf("/tasks/%d", own)).has(t, http.StatusOK, "order.close")
	s.get(fmt.Sprintf("/tasks/%d", foreign)).has(t, http.StatusNotFound)
	s.get("/tasks").has(t, http.StatusOK, "You see some tags only")
	s.get("/tasks?tag=mail.send").has(t, http.StatusForbidden)
	s.get("/bulk?verb=cancel&status=pending").has(t, http.StatusBadRequest)
	s.get("/bulk?verb=cancel&status=pending&tag=mail.send").has(t, http.StatusForbidden)
	for _, path := range []string{"/tasks", "/tasks?tag=order.close", "/find?q=mail.send"} {
		if a := s.get(path); strings.Contains(a.body, "mail.send") {
			t.Errorf("%s names the foreign tag", path)
		}
	}
}

func TestAnAddressTellsItsMethods(t *testing.T) {
	t.Parallel()
	s := open(t)
	for request, allowed := range map[string]string{
		"DELETE /": "GET, HEAD", "POST /": "GET, HEAD", "PUT /tasks": "GET, HEAD, POST", "POST /tags": "GET, HEAD",
		"GET /tasks/5/cancel": "POST", "GET /settings": "POST", "POST /static/app.css": "GET, HEAD",
	} {
		method, path, _ := strings.Cut(request, " ")
		a := s.do(method, path, nil, "Sec-Fetch-Site", "same-origin")
		a.has(t, http.StatusMethodNotAllowed, "does not take such a request")
		if got := a.header.Get("Allow"); got != allowed {
			t.Errorf("%s: Allow is %q, want %q", request, got, allowed)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if a := s.do(method, "/none", nil, "Sec-Fetch-Site", "same-origin"); a.status != http.StatusNotFound ||
			a.header.Get("Allow") != "" {
			t.Errorf("%s of no page: %d, %v", method, a.status, a.header)
		}
	}
	s.err = dashboard.ErrSignIn
	s.do(http.MethodDelete, "/tasks", nil, "Sec-Fetch-Site", "same-origin").has(t, http.StatusUnauthorized)
}

func TestAReadOnlyDashboardHasNoActions(t *testing.T) {
	t.Parallel()
	s := open(t, func(o *dashboard.Options) { o.ReadOnly = true })
	id := s.save("order.close")
	if a := s.get(fmt.Sprintf("/tasks/%d", id)); strings.Contains(a.body, "/cancel") || a.status != http.StatusOK {
		t.Error("it offers to cancel")
	}
	s.post(fmt.Sprintf("/tasks/%d/cancel", id), nil).has(t, http.StatusForbidden, "is read-only")
	s.post(fmt.Sprintf("/tasks/%d/show", id), nil).has(t, http.StatusOK, "4711")
}

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close")
	path := fmt.Sprintf("/tasks/%d/cancel", id)
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", ""},
		{"Sec-Fetch-Site", "", "Origin", "http://evil.example"}, {"Sec-Fetch-Site", "", "Origin", "null"},
	} {
		s.post(path, nil, header...).has(t, http.StatusForbidden, "another site")
		s.post("/settings", url.Values{"theme": {"dark"}}, header...).has(t, http.StatusForbidden)
	}
	if s.status(id) != delaytask.Pending {
		t.Fatal("a refused form has cancelled the task")
	}
	s.post(path, nil, "Sec-Fetch-Site", "", "Origin", "http://example.com").has(t, http.StatusSeeOther)
}

func TestWithoutAUserThereIsNoPage(t *testing.T) {
	t.Parallel()
	if _, err := dashboard.New(nil, dashboard.Options{}); !errors.Is(err, dashboard.ErrNoWho) {
		t.Errorf("without Who: %v", err)
	}
	s := open(t, func(o *dashboard.Options) { o.SignIn = "login" })
	id := s.save("order.close")
	s.err = dashboard.ErrSignIn
	a := s.get(fmt.Sprintf("/tasks/%d?did=cancel", id))
	a.has(t, http.StatusSeeOther)
	if to := a.header.Get("Location"); to != fmt.Sprintf("./../login?next=tasks%%2F%d%%3Fdid%%3Dcancel", id) {
		t.Errorf("it leads to %s", to)
	}
	s.get("/tasks", "HX-Request", "true").has(t, http.StatusUnauthorized)
	s.post(fmt.Sprintf("/tasks/%d/cancel", id), nil).has(t, http.StatusUnauthorized)
	s.err = errors.New("the sessions cannot be read")
	s.get("/tasks").has(t, http.StatusServiceUnavailable)
	s.err, s.user = nil, dashboard.User{Name: "eve", Role: "owner", Tags: []string{"*"}}
	s.get("/tasks").has(t, http.StatusServiceUnavailable)
}
