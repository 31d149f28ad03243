package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// fail saves a task of the tag and returns once it has failed.
func (s *site) fail(tag string) int64 {
	s.t.Helper()
	id, err := s.SaveDelayTask(s.t.Context(), tag, "x", 0, delaytask.WithMaxAttempts(1))
	servertest.OK(s.t, err)
	task, err := s.Wait(s.t.Context(), id)
	servertest.OK(s.t, err)
	if task.Status != delaytask.Failed {
		s.t.Fatalf("the task is %s", task.Status)
	}
	return id
}

// counted stores what a process has counted of a tag within a minute that is over.
func (s *site) counted(tag string, ago time.Duration) {
	s.t.Helper()
	begin := row.SpanMinute.Begin(row.At(s.Now()).Add(-ago))
	servertest.OK(s.t, core.Of(s.Scheduler).Store().PutRollups(s.t.Context(), []row.Rollup{{
		Span: row.SpanMinute, Begin: begin, Tag: tag, Node: "f", Completed: 1234, Failed: 5,
		Late: row.Histogram{{Class: row.LateClass(time.Millisecond), N: 100}}, Max: 1200 * time.Microsecond,
	}, {
		Span: row.SpanMark, Begin: begin, Node: "f", Mark: row.Mark{Kind: report.MarkJoined, Name: hostile[0]},
	}}))
}

// The process that has paused a tag writes its mark within a minute, and when it stops.
func TestATagTellsWhoPausedIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	for _, who := range []string{"ann", "bob"} { // who comes second has changed nothing
		s.user.Name = who
		s.post("/tags/a%2Fb/pause", nil).has(t, http.StatusSeeOther)
	}
	servertest.OK(t, s.Stop(t.Context()))
	reader := servertest.Open(t, s.dsn, scheduler.Config{})
	h, err := dashboard.New(reader, dashboard.Options{
		Who: func(*http.Request) (dashboard.User, error) { return s.user, nil },
	})
	servertest.OK(t, err)
	s.h = h
	s.user = dashboard.User{Name: "eve", Role: dashboard.Viewer, Tags: []string{"*"}}
	for _, path := range []string{"/tags/a%2Fb", "/"} {
		a := s.get(path)
		a.has(t, http.StatusOK, "by ann")
		if strings.Contains(a.body, "by bob") {
			t.Errorf("%s names who paused a tag that was paused", path)
		}
	}
	if o, err := reader.Overview(t.Context()); err != nil || len(o.Tags) != 1 || o.Tags[0].PausedBy != "ann" ||
		o.Tags[0].PausedSince.IsZero() {
		t.Errorf("got %+v, %v", o.Tags, err)
	}
}

func TestATagShowsHowItStands(t *testing.T) {
	t.Parallel()
	s := open(t)
	text := hostile[0]
	servertest.OK(t, s.Register("a/b", processor.Func(func(context.Context, *delaytask.Task) error {
		return errors.New("no 17 " + text)
	}), processor.Concurrency(7)))
	servertest.OK(t, s.Start(t.Context()))
	failed := s.fail("a/b")
	s.save("a/b")
	s.counted("a/b", 5*time.Minute)
	_, err := s.SaveSchedule(t.Context(), "nightly", delaytask.Cron("*/5 * * * *", ""), "a/b", "x")
	servertest.OK(t, err)

	s.get("/tags").has(t, http.StatusOK, `href="tags/a%2Fb"`, "1 node", `title="blue"`, `status=failed&amp;tag=a%2Fb`,
		"1,234", "✕ 5", "1.0 ms / 1 ms", `action="./tags/a%2Fb/pause"`, "delaytask stats")
	s.get("/tags/a%2Fb").has(t, http.StatusOK, "7 at once in this process", "blue", "nightly", "*/5 * * * *",
		`../tasks?status=failed&amp;tag=a%2Fb"`, "no * &lt;script&gt;", "&#43;</span> <time", "&#34;p99&#34;",
		"node &lt;script&gt;", fmt.Sprintf("../tasks/%d", failed), "bulk?group=",
		"delaytask stats --since 1h --tag a/b")
	s.get("/tags/a%2Fb?span=30d").has(t, http.StatusOK, "--since 30d", "Lateness of the newest 10,000")
	s.get("/tags/a%2Fb?span=2h").has(t, http.StatusBadRequest, "want 1h, 24h or 30d")
	s.get("/tags/none").has(t, http.StatusOK, "Nothing is known of this tag", "delaytask save none")
	servertest.OK(t, s.Pause(t.Context(), "a/b", delaytask.Reason("move token=secret17 <b>")))
	s.get("/tags/a%2Fb").has(t, http.StatusOK, "move token=[delaytask-redacted] &lt;b&gt;")
	s.get("/tags/no%20tag").has(t, http.StatusNotFound)
	s.get("/load").has(t, http.StatusOK, "due within an hour", `<a class="row" href="tags/a%2Fb">`, "of schedules",
		"delaytask forecast --span 1h")
	s.get("/load?span=30d&tag=a/b").has(t, http.StatusOK, "--tag a/b")
	s.get("/load?tag=no+tag").has(t, http.StatusBadRequest)
	a := s.get("/failures")
	a.has(t, http.StatusOK, "1 group", "of 1 failed task", "no * &lt;script&gt;alert(*)", "no 17 &lt;script&gt;")
	group := regexp.MustCompile(`href="\./(tasks\?group=[^"]*)"`).FindStringSubmatch(a.body)
	s.get("/"+strings.ReplaceAll(group[1], "&amp;", "&")).has(t, http.StatusOK, fmt.Sprint(failed))
	retry := regexp.MustCompile(`href="\./(bulk\?group=[^"]*)"`).FindStringSubmatch(a.body)
	s.get("/"+strings.ReplaceAll(retry[1], "&amp;", "&")).has(t, http.StatusOK, "Type the number of tasks, 1")
	s.get("/failures?tag=").has(t, http.StatusSeeOther)
	for _, path := range []string{"/tags", "/tags/a%2Fb", "/failures", "/load"} {
		if a := s.get(path); strings.Contains(a.body, text) {
			t.Errorf("%s has a hostile text as it is", path)
		}
		s.get(path, "HX-Request", "true").has(t, http.StatusOK, `<div id="live"`)
	}
}

func TestATagIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.save("a/b")
	paused := func() bool {
		states, err := s.Tags(t.Context())
		servertest.OK(t, err)
		return len(states) > 0 && states[0].Paused
	}
	for _, step := range []struct {
		path, from, to string
		paused         bool
		says           string
	}{
		{"/tags/a%2Fb/pause", "tags", "./../../tags?did=pause&tag=a%2Fb", true, "The tag a/b is paused"},
		{"/tags/a%2Fb/resume", "tag", "./../../tags/a%2Fb?did=resume", false, "The tag a/b runs again"},
	} {
		a := s.post(step.path, url.Values{"from": {step.from}})
		a.has(t, http.StatusSeeOther)
		if to := a.header.Get("Location"); to != step.to || paused() != step.paused {
			t.Errorf("%s leads to %s, paused %t", step.path, to, paused())
		}
		s.get(strings.TrimPrefix(step.to, "./../..")).has(t, http.StatusOK, step.says)
	}
	s.post("/tags/unseen/pause", nil).has(t, http.StatusSeeOther)
	s.get("/tags/unseen?did=unseen").has(t, http.StatusOK, "is it misspelt?")
	s.post("/tags/unseen/resume", nil).has(t, http.StatusSeeOther)
	s.post("/tags/a%2Fb/drop", nil).has(t, http.StatusNotFound)
	s.post("/tags/no%20tag/pause", nil).has(t, http.StatusNotFound)
	for _, user := range []dashboard.User{
		{Role: dashboard.Viewer, Tags: []string{"*"}}, {Role: dashboard.Operator, Tags: []string{"order.*"}}, {},
	} {
		s.user = user
		s.post("/tags/a%2Fb/pause", nil).has(t, http.StatusForbidden)
		if a := s.get("/tags"); paused() || strings.Contains(a.body, "a%2Fb/pause") {
			t.Errorf("%+v can pause the tag, or is offered to", user)
		}
	}
}

func TestForeignTagsAreInNoListOrSum(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.save("order.close")
	for range 7 {
		s.save("mail.send")
	}
	s.counted("mail.send", 5*time.Minute)
	servertest.Eventually(t, "the forecast has the time to count all", func() bool {
		return strings.Contains(s.get("/load?span=24h").body, "<dd>8</dd>")
	})
	s.get("/load?span=24h").has(t, http.StatusOK, "mail.send")
	s.user = dashboard.User{Name: "bob", Role: dashboard.Viewer, Tags: []string{"order.*"}}
	servertest.Eventually(t, "the forecast has the time to count what others may see", func() bool {
		a := s.get("/load?span=24h")
		a.has(t, http.StatusOK, "order.close")
		return strings.Contains(a.body, "<dd>1</dd>")
	})
	s.get("/tags").has(t, http.StatusOK, "order.close")
	s.get("/failures").has(t, http.StatusOK, "You see some tags only")
	for _, path := range []string{"/load?span=24h", "/tags", "/failures", "/failures?tag=order.close",
		"/tags/order.close"} {
		if a := s.get(path); a.status != http.StatusOK || strings.Contains(a.body, "mail.send") {
			t.Errorf("%s: %d, or it names the foreign tag", path, a.status)
		}
	}
	for _, path := range []string{"/load?tag=mail.send", "/failures?tag=mail.send", "/tags/mail.send"} {
		s.get(path).has(t, http.StatusForbidden)
	}
	s.user = dashboard.User{Name: "eve", Verbs: []string{"observe"}, Tags: []string{"*"}}
	if a := s.get("/tags/mail.send"); a.status != http.StatusOK || strings.Contains(a.body, "Failures</h2>") {
		t.Error("who may not read tasks sees their errors")
	}
	s.get("/failures").has(t, http.StatusForbidden)
	s.user = admin
	s.user.Tags = []string{"none.*"}
	s.get("/tags").has(t, http.StatusOK, "There are no tasks")
	s.get("/load").has(t, http.StatusOK, "nothing falls due within an hour")
}

// Pages of thousands of tags had megabytes.
func TestPagesListFewOfVeryManyTags(t *testing.T) {
	t.Parallel()
	s := open(t)
	now := row.At(s.Now())
	rows := make([]row.Row, 620)
	for i := range rows {
		due := now.Add(time.Hour)
		if i >= 500 { // overdue, and behind all others by their names
			due = now.Add(-time.Hour)
		}
		rows[i] = row.Row{ID: int64(i + 1), Tag: fmt.Sprintf("t%03d", i), Due: due, Expected: due, TTR: time.Minute}
	}
	servertest.OK(t, core.Of(s.Scheduler).Store().Insert(t.Context(), nil, rows))
	for page, findings := range map[string]int{"/": 100, "/tags": 0} {
		text := s.get(page).body
		tags, last := strings.Count(text, `<tr id="tag:`), strings.Contains(text, `<tr id="tag:t619"`)
		if n := strings.Count(text, `<code class="do">`); tags != 500 || !last || n != findings {
			t.Errorf("%s has %d tags, with an overdue one %t, and %d findings", page, tags, last, n)
		}
		if !strings.Contains(text, "120 more tags are not shown") ||
			strings.Contains(text, "20 more findings are not shown") != (findings > 0) {
			t.Errorf("%s does not say what is left out", page)
		}
	}
}
