package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// Lists have the orders of indexes alone, and load no bodies. Ids and keys are looked up exactly.
func TestListsAreReadByIndexes(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close", delaytask.WithKey("no 4711"))
	s.save("order.close", delaytask.WithKey("4712"))
	for _, order := range []string{"key", "created", "error", "id DESC"} {
		s.get("/tasks?status=pending&order="+strings.ReplaceAll(order, " ", "+")).
			has(t, http.StatusBadRequest, "there is no order")
	}
	s.get("/tasks?key=4712").has(t, http.StatusBadRequest, "needs a Tag")
	for _, c := range []struct{ asked, to string }{
		{fmt.Sprint(id), fmt.Sprintf("./tasks/%d", id)}, {"order.close 4712", "./tasks?key=4712&tag=order.close"},
		{"order.close", "./tasks?tag=order.close"},
	} {
		a := s.get("/find?q=" + strings.ReplaceAll(c.asked, " ", "+"))
		if a.has(t, http.StatusSeeOther); a.header.Get("Location") != c.to {
			t.Errorf("%q leads to %s", c.asked, a.header.Get("Location"))
		}
	}
	s.get("/find?q=").has(t, http.StatusBadRequest)
	found := s.get("/tasks?tag=order.close&key=4712")
	found.has(t, http.StatusOK, "4712")
	if strings.Contains(found.body, "no 4711") {
		t.Error("another key is found, too")
	}
	s.save("order.close", delaytask.WithKey("4713"), delaytask.WithApp("shop"))
	s.get("/tasks?tag=order.close").has(t, http.StatusOK, "<code>4713</code>", "of shop")
	s.get("/tasks?tag=order.close&key=4713").has(t, http.StatusOK, "with the name of that application")
	s.get("/tasks?tag=order.close&key=4713&app=shop").has(t, http.StatusOK, "<code>4713</code>", `value="shop"`)
	s.get("/bulk?verb=cancel&status=pending&tag=order.close&key=4713&app=shop").
		has(t, http.StatusOK, "<dd>shop</dd>", "<strong>1</strong>")
}

// Bodies come when they are asked for, first their beginnings, and never what looks like a secret. No page has the name
// of the database.
func TestBodiesAndSecretsStayHidden(t *testing.T) {
	t.Parallel()
	s := open(t)
	long, err := s.SaveDelayTask(t.Context(), "order.close", strings.Repeat("line of a body\n", 10_000), time.Hour)
	servertest.OK(t, err)
	secret, err := s.SaveDelayTask(t.Context(), "order.close", `{"user":"ann","password":"hunter2"}`, time.Hour,
		delaytask.WithHeaders(map[string]string{"authorization": "Bearer hunter2", "x-kept": "here"}))
	servertest.OK(t, err)
	for _, path := range []string{"/", "/tasks", "/tasks?status=pending", fmt.Sprintf("/tasks/%d", long),
		fmt.Sprintf("/tasks/%d", secret), "/tags", "/tags/order.close", "/load", "/failures", "/nodes", "/receivers",
		"/schedules", "/audit"} {
		a := s.get(path)
		if a.has(t, http.StatusOK); strings.Contains(a.body, "line of a body") || strings.Contains(a.body, "hunter2") {
			t.Errorf("%s shows a body or a secret", path)
		}
		if strings.Contains(a.body, s.dsn) || strings.Contains(a.body, "sqlite:") {
			t.Errorf("%s names the database", path)
		}
	}
	s.get(fmt.Sprintf("/tasks/%d", secret)).has(t, http.StatusOK, "x-kept", "here")
	shown := s.post(fmt.Sprintf("/tasks/%d/show", long), nil)
	if shown.has(t, http.StatusOK, "Show all"); len(shown.body) > 30_000 {
		t.Errorf("a long body is shown with %d bytes at once", len(shown.body))
	}
	masked := s.post(fmt.Sprintf("/tasks/%d/show", secret), nil)
	masked.has(t, http.StatusOK, "&#34;user&#34;:&#34;ann&#34;", "[delaytask-redacted]")
	if strings.Contains(masked.body, "<textarea") || strings.Contains(masked.body, "hunter2") {
		t.Error("a masked body can be edited, or is not masked")
	}

	run, err := core.Of(s.Scheduler).Bulks().Start(bulk.About{Verb: "retry", AsOf: s.Now()}, nil,
		func(context.Context, func(int)) (int, error) {
			return 0, &row.Error{Op: "retry tasks", Err: errors.New("access denied for user 'tasks'@'10.0.0.7'")}
		})
	servertest.OK(t, err)
	servertest.Eventually(t, "the bulk change fails", func() bool {
		state, _ := core.Of(s.Scheduler).Bulks().Get(run.ID)
		return state.Outcome == bulk.Failed
	})
	failed := s.get("/bulk/" + run.ID)
	failed.has(t, http.StatusOK, "It has ended early", "The database does not answer")
	if strings.Contains(failed.body, "10.0.0.7") {
		t.Error("a bulk change that has failed names the host of the database")
	}
}

// The footer names the kind of the server.
func TestTheFooterNamesTheServer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		s := openOn(t, d)
		kind := map[dbtest.Kind]string{dbtest.SQLite: "SQLite<", dbtest.MariaDB: "MariaDB 1", dbtest.MySQL: "MySQL 9"}
		s.get("/tasks").has(t, http.StatusOK, "<p>delaytask "+scheduler.Version+" · "+kind[d.Kind])
	})
}

// A list asks before it cancels what was selected. Enter on a box presses the form's first button, which does nothing.
func TestASelectionIsCancelledWithAQuestion(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close")
	_, form, _ := strings.Cut(s.get("/tasks").body, `<form method="post" action="tasks">`)
	first := strings.Index(form, "<button")
	if !strings.HasPrefix(form[first:], `<button name="verb" value="none" hidden>`) {
		t.Errorf("the first button is %.60s", form[first:])
	}
	a := s.post("/tasks", url.Values{"verb": {"none"}, "id": {fmt.Sprint(id)}, "back": {"tasks?tag=a"}})
	if a.has(t, http.StatusSeeOther); a.header.Get("Location") != "./tasks?tag=a" || s.status(id) != delaytask.Pending {
		t.Errorf("the first button leads to %s", a.header.Get("Location"))
	}
	asks, cancels := strings.Index(form, "This cannot be undone"), strings.Index(form, `value="cancel"`)
	if asks < 0 || asks > cancels {
		t.Error("it does not ask")
	}
}

// A row keeps ten attempts.
func TestATaskSaysThatAttemptsAreNotKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close")
	servertest.Exec(t, s.dsn, fmt.Sprintf(`UPDATE delay_task_message SET attempt = 17, `+
		`errors = '[{"n":16,"error":"e"},{"n":17,"error":"f"}]' WHERE id = %d`, id))
	s.get(fmt.Sprintf("/tasks/%d", id)).has(t, http.StatusOK, "Attempts 1 to 15 are not kept")
}

// Every time is exact, and its zone is named.
func TestTimesAreExact(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := time.Date(2040, 1, 2, 3, 4, 5, 678e6, time.UTC)
	id, err := s.SaveDelayTask(t.Context(), "order.close", nil, 0, delaytask.WithTime(at))
	servertest.OK(t, err)
	for _, path := range []string{fmt.Sprintf("/tasks/%d", id), "/tasks?status=pending"} {
		s.get(path).has(t, http.StatusOK, `datetime="2040-01-02T03:04:05.678000Z">2040-01-02 03:04:05.678<`, "UTC")
		s.get(path, "Cookie", "delaytask_view=zone=Asia%2FShanghai").
			has(t, http.StatusOK, ">2040-01-02 11:04:05.678<", "Asia/Shanghai")
	}
}
