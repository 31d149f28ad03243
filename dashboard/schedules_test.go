package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// yearly is far enough away that nothing happens by itself.
var yearly = delaytask.Cron("30 2 1 1 *", "Europe/Berlin")

func (s *site) schedule(name, tag string, options ...delaytask.Option) string {
	s.t.Helper()
	_, err := s.SaveSchedule(s.t.Context(), name, yearly, tag, `{"order":4711}`, options...)
	servertest.OK(s.t, err)
	return "/schedules/" + url.PathEscape(name)
}

func (s *site) state(name string) delaytask.Schedule {
	s.t.Helper()
	found, err := s.GetSchedule(s.t.Context(), name)
	servertest.OK(s.t, err)
	return found
}

// A shell takes such a name for a flag, and the command does so, too.
func TestCommandsNameWhatLooksLikeAFlag(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	s.get(s.schedule("-x", "-y")).has(t, http.StatusOK, "delaytask schedule show -- -x<",
		"delaytask schedule explain --tick … -- -x<", "delaytask schedule pause --reason … -- -x<",
		"delaytask schedule delete -- -x<")
	s.get("/tags/-y").has(t, http.StatusOK, "delaytask pause -- -y<", "delaytask stats --since 1h --tag -y<")
	s.get("/tasks?tag=-y&due_from=2027-01-31T08:30:00Z&due_before=2027-02-01T00:00:00Z").has(t, http.StatusOK,
		"delaytask list --tag -y --newer 2027-01-31T08:30:00Z --older 2027-02-01T00:00:00Z<")
}

func TestSchedulesAreShownWithWhatIsToCome(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	s.get("/schedules").has(t, http.StatusOK, "There is no schedule")
	page := s.schedule("report/yearly", "order.report", delaytask.WithJitter(time.Hour), delaytask.WithMaxRuns(3),
		delaytask.WithOverlap(delaytask.OverlapAllow), delaytask.WithHeader("x", hostile[0]))
	s.get("/schedules").has(t, http.StatusOK, `href="schedules/report%2Fyearly"`, "30 2 1 1 *", "Europe/Berlin",
		"active")
	a := s.get(page)
	a.has(t, http.StatusOK, "at most 100 at once", "up to 1 h after", "of 3", "-01-01 02:30:00 &#43;01:00",
		"&lt;script", "Its next tick is", "No tick was decided")
	if n := strings.Count(a.body, "-01-01 02:30:00"); n != 3 {
		t.Errorf("%d ticks are to come of 3 runs", n)
	}
	if strings.Contains(a.body, "4711") {
		t.Error("the page shows the body")
	}
	s.get(page, "HX-Request", "true").has(t, http.StatusOK, "Ticks to come")
	s.get(page+"?tick=2020-01-01T02:30").has(t, http.StatusSeeOther)
	s.get(page+"?tick=2020-01-01T02:30:00Z").has(t, http.StatusOK, "The tick at 2020-01-01 02:30:00.000:",
		"names no tick")
	s.get(page+"?tick=noon").has(t, http.StatusBadRequest)
	s.get("/schedules/none").has(t, http.StatusNotFound, "no schedule of this name")
	s.get("/schedules/%00").has(t, http.StatusNotFound)

	for i := range 60 {
		s.schedule(fmt.Sprintf("z%02d", i), "order.z")
	}
	next := s.get("/schedules?prefix=z")
	next.has(t, http.StatusOK, "z49", "schedules?after=z49&amp;prefix=z")
	next = s.get("/schedules?prefix=z&after=z49")
	next.has(t, http.StatusOK, "z59", "First page")
	if strings.Contains(next.body, "z49<") || strings.Contains(next.body, `id="live"`) {
		t.Error("the second page repeats the first, or refreshes itself")
	}
}

func TestATickThatWasSkippedAheadIsNotToCome(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	save := func(months string) {
		t.Helper()
		when := delaytask.Cron("30 2 1 "+months+" *", "Europe/Berlin")
		when.Start = time.Date(2039, 6, 1, 0, 0, 0, 0, time.UTC)
		_, err := s.SaveSchedule(t.Context(), "a", when, "order.report", nil)
		servertest.OK(t, err)
	}
	save("1")
	skipped, err := s.SkipTick(t.Context(), "a")
	servertest.OK(t, err)
	save("1,7")
	for path, times := range map[string][3]string{
		"/schedules":   {"2039-07-01 00:30:00", "2040-07-01 00:30:00", "2040-01-01 01:30:00"},
		"/schedules/a": {"Fri 2039-07-01 02:30:00", "Sun 2040-07-01 02:30:00", "Sun 2040-01-01 02:30:00"},
	} {
		a := s.get(path)
		if a.has(t, http.StatusOK, times[0], times[1]); strings.Contains(a.body, times[2]) {
			t.Errorf("%s: the skipped tick is to come", path)
		}
	}
	s.get("/schedules/a?tick="+skipped.Format(time.RFC3339)).has(t, http.StatusOK, "It does not run: skipped")
}

// Each action does what it says, and only for those who have its right to the tag.
func TestEveryActionOnAScheduleAsksForItsRight(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	page := s.schedule("a/b", "order.close")
	other := s.schedule("mail", "mail.send")
	backfill := url.Values{"from": {"2024-12-31T00:00"}, "to": {"2025-12-31T00:00:00Z"}, "at_once": {"1"}}
	acts := []struct {
		verb string
		form url.Values
		done func() bool
	}{
		{"pause", url.Values{"reason": {"<i>rest</i>"}}, func() bool {
			return s.state("a/b").State == delaytask.SchedulePaused && s.state("a/b").Reason == "<i>rest</i>"
		}},
		{"resume", nil, func() bool { return s.state("a/b").State == delaytask.ScheduleActive }},
		{"skip", nil, func() bool { return s.state("a/b").LastTick.Month() == time.January }},
		{"reset", nil, func() bool { return s.state("a/b").State == delaytask.ScheduleActive }},
		{"run", nil, func() bool { return s.state("a/b").RunID != 0 }},
		{"run", url.Values{"beside": {"1"}}, func() bool { return s.state("a/b").RunID != 0 }},
		{"backfill", backfill, func() bool {
			found, err := s.ListSchedules(t.Context(), delaytask.ScheduleFilter{Prefix: "a/b/backfill/"})
			servertest.OK(t, err)
			return len(found.Schedules) == 1
		}},
		{"delete", nil, func() bool {
			_, err := s.GetSchedule(t.Context(), "a/b")
			return err != nil
		}},
	}
	for _, act := range acts {
		before := s.state("a/b").Version
		for _, user := range []dashboard.User{
			{Role: dashboard.Viewer, Tags: []string{"order.*"}}, {Role: dashboard.Admin, Tags: []string{"mail.*"}},
			{Verbs: []string{"read"}, Tags: []string{"*"}},
		} {
			s.user = user
			a := s.post(page+"/"+act.verb, act.form)
			if a.status != http.StatusForbidden && a.status != http.StatusNotFound {
				t.Errorf("%s by %v: %d", act.verb, user, a.status)
			}
		}
		if s.state("a/b").Version != before {
			t.Errorf("%s has changed the schedule for one who may not", act.verb)
		}
		s.user = dashboard.User{Role: dashboard.Operator, Tags: []string{"order.*"}}
		a := s.post(page+"/"+act.verb, act.form)
		a.has(t, http.StatusSeeOther)
		if !act.done() {
			t.Errorf("%s was not done", act.verb)
		}
		to := strings.TrimPrefix(a.header.Get("Location"), "./../..")
		shown := s.get(to)
		shown.has(t, http.StatusOK, `class="done"`)
		if strings.Contains(shown.body, "<i>rest") {
			t.Error("a reason is not text")
		}
	}
	s.post(other+"/pause", nil).has(t, http.StatusNotFound)
	s.get(other).has(t, http.StatusNotFound)
	if a := s.get("/schedules"); strings.Contains(a.body, "mail") {
		t.Error("a schedule of a foreign tag appears")
	}
	s.user = admin
	s.post(other+"/resume", nil).has(t, http.StatusConflict, "does not allow this now")
	s.post(other+"/backfill", url.Values{"from": {"x"}}).has(t, http.StatusBadRequest)
	s.post(other+"/backfill", url.Values{"from": {"2024-02-01"}, "to": {"2024-03-01"}, "at_once": {"1"}}).
		has(t, http.StatusBadRequest)
	s.post(other+"/show", nil).has(t, http.StatusOK, "4711")
	s.user = dashboard.User{Role: dashboard.Viewer, Tags: []string{"*"}}
	s.post(other+"/show", nil).has(t, http.StatusForbidden)
	if a := s.get(other); strings.Contains(a.body, "/pause") || strings.Contains(a.body, "/show") {
		t.Error("a viewer is offered actions")
	}
}

func TestSecretsOfSchedulesAreHidden(t *testing.T) {
	t.Parallel()
	s := open(t)
	servertest.OK(t, s.Start(t.Context()))
	const hidden = "canary-Qx7"
	page := s.schedule("nightly", "report", delaytask.WithHeader("x-api-key", hidden))
	s.post(page+"/pause", url.Values{"reason": {"the password=" + hidden + " is wrong"}}).has(t, http.StatusSeeOther)
	for _, path := range []string{page, "/schedules", "/tags/report", "/audit"} {
		a := s.get(path)
		a.has(t, http.StatusOK, "redacted")
		if strings.Contains(a.body, hidden) {
			t.Errorf("%s shows the secret", path)
		}
	}
}
