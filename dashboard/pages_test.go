package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// links are what a browser follows or sends.
var links = regexp.MustCompile(`(?:href|src|action|hx-get)="([^"]*)"`)

// Every page has the headers, leads nowhere but into the dashboard, and needs no script and no style of its own.
func TestPagesStandUnderAnyPrefix(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("a/b", delaytask.WithKey("k"))
	for _, path := range []string{"/tasks", "/tasks?status=pending&tag=a%2Fb", fmt.Sprintf("/tasks/%d", id),
		"/tags/mail:send", "/changes", "/bulk?verb=cancel&status=pending", "/bulk/none", "/nodes", "/nodes/1",
		"/receivers",
		"/receivers/1", "/schedules", "/schedules/none", "/nowhere/at/all"} {
		a := s.get(path)
		for _, found := range links.FindAllStringSubmatch(a.body, -1) {
			to := strings.ReplaceAll(found[1], "&amp;", "&")
			if u, err := url.Parse(to); err != nil || u.IsAbs() || strings.HasPrefix(to, "/") {
				t.Errorf("%s: the link %q does not stay within", path, to)
			} else if strings.Contains(u.RawQuery, "%3d") || strings.Contains(u.RawQuery, "%26") {
				t.Errorf("%s: the query of the link %q is encoded twice", path, to)
			}
			if strings.Contains(to, "%3d") || strings.Contains(to, "%26") {
				t.Errorf("%s: the parameters of the link %q are escaped twice", path, to)
			}
		}
		for _, bad := range []string{" style=", "<style", " onclick=", "javascript:", "<base", "ZgotmplZ"} {
			if strings.Contains(a.body, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
				"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	mounted := http.StripPrefix("/ops/tasks", s.h)
	s.h = mounted
	a := s.get("/ops/tasks/tasks?due_from=&status=pending")
	a.has(t, http.StatusSeeOther)
	if to := a.header.Get("Location"); to != "./tasks?status=pending" {
		t.Errorf("an empty parameter leads to %q", to)
	}
}

func TestTheMenuMarksWhereThePageBelongs(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("a")
	for path, want := range map[string]string{
		"/": "Overview", "/tasks": "Tasks", fmt.Sprintf("/tasks/%d", id): "Tasks", "/changes": "Bulk changes",
		"/bulk?verb=cancel&status=pending": "Bulk changes", "/bulk/none": "Bulk changes", "/audit": "Audit",
	} {
		marked := regexp.MustCompile(`aria-current="page">([^<]*)<`).FindAllStringSubmatch(s.get(path).body, -1)
		if len(marked) != 1 || marked[0][1] != want {
			t.Errorf("%s: the menu marks %v, want %s", path, marked, want)
		}
	}
}

// TestNamesOfDotsAreLinked resolves links as browsers do, which take . and .. out of a path.
func TestNamesOfDotsAreLinked(t *testing.T) {
	t.Parallel()
	s := open(t)
	follow := func(from, to string) string {
		t.Helper()
		base, err := url.Parse(from)
		servertest.OK(t, err)
		resolved, err := base.Parse(to)
		servertest.OK(t, err)
		return resolved.String()
	}
	for _, name := range []string{".", "..", "a/..", "..."} {
		id := s.save(name)
		_, err := s.SaveSchedule(t.Context(), name, delaytask.Cron("@daily", ""), name, "x")
		servertest.OK(t, err)
		task, list := fmt.Sprintf("/tasks/%d", id), "/tasks?tag="+url.QueryEscape(name)
		for _, from := range []string{task, list, "/schedules"} {
			a := s.get(from)
			linked := false
			for _, link := range links.FindAllStringSubmatch(a.body, -1) {
				to := follow(from, link[1])
				if path, _, _ := strings.Cut(to, "?"); path != "/tags/"+wire.Segment(name) &&
					path != "/schedules/"+wire.Segment(name) {
					continue
				}
				linked = true
				s.get(to).has(t, http.StatusOK, "<h1>"+name)
			}
			if !linked {
				t.Errorf("%s has no link to %s", from, name)
			}
		}
		act := follow("/", "./tags/"+wire.Segment(name)+"/pause")
		a := s.post(act, nil)
		a.has(t, http.StatusSeeOther)
		s.get(follow(act, a.header.Get("Location"))).has(t, http.StatusOK, "<h1>"+name, "resume")
		s.post(follow("/", "./schedules/"+wire.Segment(name)+"/pause"), nil).has(t, http.StatusSeeOther)
	}
}

// hostile are texts that would do something if they were not text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `javascript:alert(1)`,
	`</textarea><script>alert(1)</script>`, `{{.Scheduler}}`, `<svg/onload=alert(1)>`, "&lt;b&gt;",
}

func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i, text := range hostile {
		id, err := s.SaveDelayTask(t.Context(), "order.close", text, time.Hour, delaytask.WithKey(text),
			delaytask.WithHeaders(map[string]string{"x-note": text}))
		servertest.OK(t, err)
		for _, a := range []answer{
			s.get(fmt.Sprintf("/tasks/%d", id)), s.get("/tasks?tag=order.close"),
			s.get("/tasks?tag=order.close&error=" + url.QueryEscape(text)),
			s.get("/tasks?tag=" + url.QueryEscape(text)),
			s.get("/find?q=" + url.QueryEscape(text)), s.post(fmt.Sprintf("/tasks/%d/show", id), nil),
			s.get("/tasks?status=" + url.QueryEscape(text)), s.get("/tasks/" + url.PathEscape(text)),
		} {
			if strings.ContainsAny(text, "<") && strings.Contains(a.body, text) {
				t.Errorf("text %d: the page has it as it is", i)
			}
		}
	}
	id, err := s.SaveDelayTask(t.Context(), "order.close", "pay \u202e001 now \u0000", time.Hour)
	servertest.OK(t, err)
	a := s.post(fmt.Sprintf("/tasks/%d/show", id), nil)
	a.has(t, http.StatusOK, "pay [U+202E]001 now")
	if strings.Contains(a.body, "<textarea") || strings.ContainsAny(a.body, "\u202e\x00") {
		t.Error("what cannot be seen can be edited")
	}
}

func TestATaskTellsWhyAndCanBeChanged(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close", delaytask.WithKey("4711"))
	path := fmt.Sprintf("/tasks/%d", id)
	s.get(path).has(t, http.StatusOK, "Why:", "It is due at", "No live node serves the tag order.close",
		"Show the body", fmt.Sprintf("delaytask explain %d", id))
	s.post(path+"/reschedule", url.Values{"delay": {"2h"}}).has(t, http.StatusSeeOther)
	s.post(path+"/reschedule", url.Values{"delay": {"2h"}, "at": {"2040-01-01T00:00"}}).has(t, http.StatusBadRequest)
	s.post(path+"/reschedule", url.Values{"delay": {"soon"}}).has(t, http.StatusBadRequest, "delay")
	s.post(path+"/retry", nil).has(t, http.StatusConflict)
	task, err := s.Get(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	stale := url.Values{"body": {"a"}, "version": {fmt.Sprint(task.Version - 1)}}
	s.post(path+"/body", stale).has(t, http.StatusConflict)
	s.post(path+"/body", url.Values{"body": {"a\r\nb"}, "version": {fmt.Sprint(task.Version)}}).
		has(t, http.StatusSeeOther)
	if task, err = s.Get(t.Context(), delaytask.ID(id)); err != nil || string(task.Body) != "a\nb" {
		t.Errorf("the body is %q, %v", task.Body, err)
	}
	s.post(path+"/cancel", nil).has(t, http.StatusSeeOther)
	s.get(path+"?did=cancel").has(t, http.StatusOK, "The task is cancelled", "It was cancelled at")
	s.post(path+"/destroy", nil).has(t, http.StatusNotFound)
	if a := s.get(path + "?did=a+word+of+another"); strings.Contains(a.body, `class="done"`) {
		t.Error("the page says what the address says")
	}
	s.get("/tasks?tag=", "HX-Request", "true").has(t, http.StatusNoContent)
	other := s.save("order.close")
	var bodies sync.WaitGroup
	var changed atomic.Int64
	begin := make(chan struct{})
	for range 8 {
		bodies.Go(func() {
			<-begin
			a := s.post(fmt.Sprintf("/tasks/%d/body", other), url.Values{"body": {"a"}, "version": {"0"}})
			if a.status == http.StatusSeeOther {
				changed.Add(1)
			}
		})
	}
	close(begin)
	bodies.Wait()
	if n := changed.Load(); n != 1 {
		t.Errorf("%d of 8 have replaced the body that they have seen", n)
	}
	s.post("/tasks", url.Values{"verb": {"cancel"}, "id": {fmt.Sprint(other), "x"}}).has(t, http.StatusBadRequest)
	if s.status(other) != delaytask.Pending {
		t.Error("a form that is refused has cancelled a task")
	}
	s.get("/tasks/1").has(t, http.StatusNotFound, "deleted after its retention")
}

func TestABulkChangeAsksForTheCountAndStaysWithinItsMoment(t *testing.T) {
	t.Parallel()
	s := open(t)
	for range 3 {
		s.save("order.close")
	}
	kept := s.save("mail.send")
	preview := s.get("/bulk?verb=cancel&status=pending&tag=order.close")
	preview.has(t, http.StatusOK, "Type the number of tasks, 3")
	form := url.Values{}
	for _, field := range regexp.MustCompile(`type="hidden" name="(\w+)" value="([^"]*)"`).
		FindAllStringSubmatch(preview.body, -1) {
		form.Set(field[1], strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(field[2]))
	}
	for query, flag := range map[string]string{
		"due_before=2039-01-01T00:00:00Z": "--older 2039-01-01T00:00:00Z",
		"due_from=2020-01-01T00:00:00Z":   "--newer 2020-01-01T00:00:00Z",
	} {
		s.get("/bulk?verb=cancel&tag=order.close&"+query).has(t, http.StatusOK, "Type the number of tasks, 3",
			"delaytask cancel --status pending --tag order.close "+flag+"<")
	}
	s.get("/bulk?verb=cancel&due_before=0001-01-01T00:00:00Z").has(t, http.StatusBadRequest, "due_before")
	s.get("/bulk?verb=cancel&due_before=9999-12-31T23:59:59-12:00").has(t, http.StatusBadRequest, "due_before")
	late := s.save("order.close")
	form.Set("typed", "4")
	s.post("/bulk", form).has(t, http.StatusBadRequest, "nothing was changed")
	form.Set("typed", "3")
	begun := s.post("/bulk", form)
	begun.has(t, http.StatusSeeOther)
	run := strings.TrimPrefix(begun.header.Get("Location"), ".")
	for !strings.Contains(s.get(run).body, "It is done") {
		select {
		case <-t.Context().Done():
			t.Fatal("it does not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.get(run).has(t, http.StatusOK, "<dd>3</dd>", "ann", "<code>status=pending&amp;tag=order.close</code>")
	if s.status(late) != delaytask.Pending || s.status(kept) != delaytask.Pending {
		t.Error("it has cancelled what it should not")
	}
	form.Set("as_of", "0000-01-01T00:00:00+14:00")
	s.post("/bulk", form).has(t, http.StatusBadRequest, "as_of")
	form.Set("as_of", "2040-01-01T00:00:00Z")
	form.Set("tasks", "-5")
	ahead := s.get(strings.TrimPrefix(s.post("/bulk", form).header.Get("Location"), "."))
	ahead.has(t, http.StatusOK, "order.close")
	if strings.Contains(ahead.body, "2040") || strings.Contains(ahead.body, "<dd>-5</dd>") {
		t.Error("it reaches what is saved later, or shows a number of tasks that there cannot be")
	}
	s.user = dashboard.User{Name: "bob", Role: dashboard.Operator, Tags: []string{"mail.*"}}
	s.get(run).has(t, http.StatusNotFound, "There is no such bulk change")
	s.post(run+"/stop", nil).has(t, http.StatusNotFound)
}

// Another process has begun the changes.
func TestABulkChangeOfAnotherProcessIsShownAndStopped(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.Exec(t, s.dsn, "INSERT INTO delay_task_audit (create_time, who, action, tag, tasks, detail, seen_time)"+
		" VALUES ('2026-03-01 12:00:00.000000', 'bob', 'bulk.retry', 'a', 7, 'tag=a', '2026-03-01 12:00:09.000000'),"+
		" ('2026-03-01 11:00:00.000000', '', 'bulk.cancel', '', NULL, 'late_by=1s', NULL)")
	s.get("/changes").has(t, http.StatusOK, `href="bulk/1"`, "its process died", "bob",
		"under way, or its process died")
	s.get("/bulk/1").has(t, http.StatusOK, "it has not reported for 30 s", "<dd>7</dd>", "tag=a", `action="1/stop"`)
	s.get("/audit").has(t, http.StatusOK, `href="./bulk/1"`, "its process died")
	s.post("/bulk/1/stop", nil).has(t, http.StatusSeeOther)
	if a := s.get("/bulk/1"); strings.Contains(a.body, `action="1/stop"`) {
		t.Error("it can be stopped twice")
	}
	s.get("/bulk/2").has(t, http.StatusOK, "processes of older versions do not report", "late_by=1s")
	s.post("/bulk/2/stop", nil).has(t, http.StatusConflict)
	s.user = dashboard.User{Name: "eve", Role: dashboard.Operator, Tags: []string{"mail.*"}}
	s.get("/changes").has(t, http.StatusOK, "There was no bulk change")
	s.get("/bulk/1").has(t, http.StatusNotFound, "There is no such bulk change")
}

func TestTheViewIsKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close")
	path := fmt.Sprintf("/tasks/%d", id)
	a := s.post("/settings", url.Values{"zone": {"Asia/Shanghai"}, "lang": {"zh"}, "theme": {"dark"}, "fresh": {"off"},
		"back": {strings.TrimPrefix(path, "/")}})
	a.has(t, http.StatusSeeOther)
	if to := a.header.Get("Location"); to != "."+path {
		t.Errorf("it leads to %s", to)
	}
	kept := strings.Split(a.header.Get("Set-Cookie"), ";")[0]
	s.get(path, "Cookie", kept).has(t, http.StatusOK, `lang="zh-CN"`, `data-theme="dark"`, `data-fresh="off"`,
		"Asia/Shanghai (UTC&#43;08:00)", "原因：")
	s.get(path, "Accept-Language", "zh-TW,zh;q=0.9").has(t, http.StatusOK, `lang="zh-CN"`)
	s.get(path, "Cookie", "delaytask_view=zone%3D..%2F..%2Fetc%26lang%3Dxx%26theme%3D%22").
		has(t, http.StatusOK, `lang="en"`, "<strong>UTC</strong>")
	for zone, want := range map[string]string{
		"Mars/Olympus": "例如 UTC", "Asia/Beijing": "例如 Asia/Shanghai。", "pst": "缩写可指多个时区", "Local": "例如 UTC",
	} {
		s.post("/settings", url.Values{"zone": {zone}}).has(t, http.StatusBadRequest, want)
	}
	for _, back := range []string{
		"//evil.example", "https://evil.example", `\\evil`, "/x", "a\r\nb", "../../x", "a:b",
	} {
		a := s.post("/settings", url.Values{"back": {back}})
		if to := a.header.Get("Location"); to != "./" {
			t.Errorf("%q leads to %q", back, to)
		}
	}
	for _, back := range []string{"tags/mail:send", "tags/a..b", "tasks?tag=mail:send"} {
		a := s.post("/settings", url.Values{"back": {back}})
		if to := a.header.Get("Location"); to != "./"+back {
			t.Errorf("%q leads to %q", back, to)
		}
	}
}

func TestWhatUsersDoStandsInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.save("order.close")
	path := fmt.Sprintf("/tasks/%d", id)
	s.post(path+"/show", nil).has(t, http.StatusOK)
	s.post(path+"/retry", nil).has(t, http.StatusConflict)
	s.post(path+"/cancel", nil).has(t, http.StatusSeeOther)
	page := s.get("/audit")
	page.has(t, http.StatusOK, "task.reveal", "task.retry", "task.cancel", "refused", "ann", "dashboard",
		fmt.Sprintf("./tasks/%d", id))
	s.get("/audit?action=task.cancel").has(t, http.StatusOK, "<code>task.cancel</code>", "--action task.cancel")
	s.get("/audit?before=x").has(t, http.StatusBadRequest)
	s.user = dashboard.User{Name: "bob", Role: dashboard.Operator, Tags: []string{"*"}}
	s.get("/audit").has(t, http.StatusForbidden)
	s.user = dashboard.User{Name: "eve", Role: dashboard.Admin, Tags: []string{"mail.*"}}
	if a := s.get("/audit"); a.status != http.StatusOK || strings.Contains(a.body, fmt.Sprint(id)) {
		t.Errorf("status %d, or it shows entries of a foreign tag", a.status)
	}
}

// A page says what was done to the user who did it, once, and nothing to the reader of a link.
func TestNoLinkSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	s.schedule("nightly", "a")
	id := s.save("a")
	receiver, err := core.Of(s.Scheduler).Store().(*sqlstore.Store).SaveReceiver(t.Context(),
		row.Receiver{App: "shop", Tags: []string{"a"}, TTL: time.Hour, Address: "https://shop.example/"})
	servertest.OK(t, err)
	for _, act := range []struct {
		path string
		form url.Values
	}{
		{"/tags/a/pause", url.Values{"from": {"tags"}}}, {"/tags/a/resume", nil}, {"/schedules/nightly/pause", nil},
		{"/schedules/nightly/run", nil}, {"/schedules/nightly/delete", nil},
		{fmt.Sprintf("/receivers/%d/delete", receiver.ID), nil},
		{"/tasks", url.Values{"verb": {"cancel"}, "id": {fmt.Sprint(id)}, "back": {"./tasks?tag=a"}}},
		{fmt.Sprintf("/tasks/%d/cancel", s.save("a")), nil},
	} {
		a := s.post(act.path, act.form)
		a.has(t, http.StatusSeeOther)
		to := "/" + strings.TrimLeft(a.header.Get("Location"), "./")
		s.get(strings.Replace(to, "?", "/?", 1) + "&x=1") // another page takes nothing away
		for n, says := range []bool{true, false} {
			if a := s.get(to); strings.Contains(a.body, `class="done"`) != says {
				t.Errorf("visit %d of %s after %s", n+1, to, act.path)
			}
		}
	}
}
