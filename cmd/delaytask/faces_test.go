package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// act is one change that people make, and how each face that has it is asked for it. {id} is a pending task, {failed} a
// failed one, {keyed} a pending one with the key {key}, {s} a schedule, {paused} one that is paused.
type act struct {
	needs []access.Verb
	tag   string    // of the task; default t
	api   [3]string // method, path, body
	page  [2]string // path, form
	cmd   string
	entry string // of the audit log: action, target, tag, outcome, tasks and detail
}

var acts = []act{
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"DELETE", "/v1/tasks/{id}"},
		page:  [2]string{"/tasks/{id}/cancel"},
		cmd:   "cancel {id}",
		entry: "task.cancel {id} t done 1 ",
	},
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"POST", "/v1/tasks/{failed}/retry"},
		page:  [2]string{"/tasks/{failed}/retry"},
		cmd:   "retry {failed}",
		entry: "task.retry {failed} t done 1 ",
	},
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"PATCH", "/v1/tasks/{id}", `{"delay":"2h"}`},
		page:  [2]string{"/tasks/{id}/reschedule", "delay=2h"},
		cmd:   "reschedule {id} --delay 2h",
		entry: "task.reschedule {id} t done 1 delay=2h0m0s",
	},
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"PATCH", "/v1/tasks/{id}", `{"at":"2040-01-01T01:00:00+01:00"}`},
		page:  [2]string{"/tasks/{id}/reschedule", "at=2040-01-01T00:00:00Z"},
		cmd:   "reschedule {id} --at 2040-01-01T00:00:00Z",
		entry: "task.reschedule {id} t done 1 at=2040-01-01T00:00:00Z",
	},
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"PATCH", "/v1/tasks/{id}", `{"delay":"2h","body":2}`},
		entry: "task.reschedule {id} t done 1 delay=2h0m0s with another body",
	},
	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"PATCH", "/v1/tasks/{id}", `{"body":2}`},
		page:  [2]string{"/tasks/{id}/body", "version=0&body=2"},
		entry: "task.body {id} t done 1 ",
	},
	{
		needs: []access.Verb{access.Change, access.SaveHTTP}, tag: "http",
		api:   [3]string{"PATCH", "/v1/tasks/{id}", `{"body":{"url":"https://example.com/"}}`},
		page:  [2]string{"/tasks/{id}/body", `version=0&body={"url":"https://example.com/"}`},
		entry: "task.body {id} http done 1 ",
	},
	{
		needs: []access.Verb{access.Save, access.Change},
		api: [3]string{"POST", "/v1/tasks",
			`{"tag":"t","key":"{key}","delay":"2h","on_conflict":"replace_time"}`},
		cmd:   "save t 1 --key {key} --delay 2h --on-conflict replace-time",
		entry: "task.reschedule {keyed} t done 1 on_conflict=replace_time delay=2h0m0s",
	},
	{
		needs: []access.Verb{access.Save, access.Change},
		api: [3]string{"POST", "/v1/tasks/batch", `[{"tag":"t","delay":"3h"},
			{"tag":"t","key":"{key}","body":2,"delay":"3h","on_conflict":"replace_time_and_body"}]`},
		entry: "task.reschedule  t done 1 1 saves with on_conflict=replace_time_and_body",
	},
	{
		needs: []access.Verb{access.Read, access.Bodies},
		page:  [2]string{"/tasks/{id}/show"},
		entry: "task.reveal {id} t done 0 ",
	},

	{
		needs: []access.Verb{access.Change},
		api:   [3]string{"POST", "/v1/bulk", `{"action":"cancel","filter":{"tag":"t","key":"{key}"}}`},
		page: [2]string{"/bulk", "verb=cancel&filter=status%3Dpending%26tag%3Dt%26key%3D{key}" +
			"&as_of=2040-01-01T00:00:00Z&wanted=1&typed=1"},
		cmd:   "cancel --tag t --key {key} --status pending --yes",
		entry: `bulk.cancel  t done 1 tag=t key="{key}" as_of=*`,
	},

	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/tags/t/pause"},
		entry: "tag.pause  t done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/tags/t/pause"},
		page:  [2]string{"/tags/t/pause"},
		cmd:   "pause t",
		entry: "tag.pause  t unchanged 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		page:  [2]string{"/tags/t/resume"},
		entry: "tag.resume  t done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/tags/t/resume"},
		page:  [2]string{"/tags/t/resume"},
		cmd:   "resume t",
		entry: "tag.resume  t unchanged 0 ",
	},

	{
		needs: []access.Verb{access.Schedule},
		api:   [3]string{"PUT", "/v1/schedules/{s}", `{"lines":["@daily"],"zone":"UTC","tag":"t"}`},
		cmd:   "schedule update {s} @daily",
		entry: "schedule.save {s} t done 0 @daily in UTC",
	},
	{
		needs: []access.Verb{access.Schedule, access.SaveHTTP}, tag: "http",
		api: [3]string{"PUT", "/v1/schedules/{s}",
			`{"lines":["@daily"],"zone":"UTC","tag":"http","body":{"url":"https://example.com/"}}`},
		cmd:   "schedule update {s} @daily",
		entry: "schedule.save {s} http done 0 @daily in UTC",
	},
	{
		needs: []access.Verb{access.Schedule},
		api:   [3]string{"DELETE", "/v1/schedules/{s}"},
		page:  [2]string{"/schedules/{s}/delete"},
		cmd:   "schedule delete {s} --yes",
		entry: "schedule.delete {s} t done 0 ",
	},
	{
		needs: []access.Verb{access.Schedule, access.SaveHTTP}, tag: "http",
		api:   [3]string{"DELETE", "/v1/schedules/{s}"},
		page:  [2]string{"/schedules/{s}/delete"},
		cmd:   "schedule delete {s} --yes",
		entry: "schedule.delete {s} http done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/schedules/{s}/pause", `{"reason":"moves"}`},
		page:  [2]string{"/schedules/{s}/pause", "reason=moves"},
		cmd:   "schedule pause {s} --reason moves",
		entry: "schedule.pause {s} t done 0 moves",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/schedules/{paused}/resume"},
		page:  [2]string{"/schedules/{paused}/resume"},
		cmd:   "schedule resume {paused}",
		entry: "schedule.resume {paused} t done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/schedules/{s}/reset"},
		page:  [2]string{"/schedules/{s}/reset"},
		cmd:   "schedule reset {s}",
		entry: "schedule.reset {s} t done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/schedules/{s}/skip"},
		page:  [2]string{"/schedules/{s}/skip"},
		cmd:   "schedule skip {s}",
		entry: "schedule.skip {s} t done 0 ",
	},
	{
		needs: []access.Verb{access.Operate},
		api:   [3]string{"POST", "/v1/schedules/{s}/trigger", `{"beside":true}`},
		page:  [2]string{"/schedules/{s}/run", "beside=1"},
		cmd:   "schedule trigger {s} --beside",
		entry: "schedule.run {s} t done 0 beside",
	},
	{
		needs: []access.Verb{access.Operate},
		api: [3]string{"POST", "/v1/schedules/{s}/backfill",
			`{"from":"2024-12-31T00:00:00Z","to":"2025-12-31T00:00:00Z"}`},
		page:  [2]string{"/schedules/{s}/backfill", "from=2024-12-31T00:00:00Z&to=2025-12-31T00:00:00Z&at_once=1"},
		cmd:   "schedule backfill {s} --from 2024-12-31T00:00:00Z --to 2025-12-31T00:00:00Z",
		entry: "schedule.backfill {s} t done 0 from=2024-12-31T00:00:00Z to=2025-12-31T00:00:00Z",
	},
	{
		needs: []access.Verb{access.Read, access.Bodies},
		page:  [2]string{"/schedules/{s}/show"},
		entry: "schedule.reveal {s} t done 0 ",
	},
}

// caller has rights to tasks of a tag.
type caller struct {
	verbs []access.Verb
	tag   string
}

func (c caller) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c.verbs), " ", ","), "[]") + " " + c.tag
}

// may is who may just do it, and mayNot lacks one of the rights, or has them to another tag.
func (a *act) may() caller { return caller{a.needs, cmp.Or(a.tag, "t")} }

func (a *act) mayNot() []caller {
	all := []caller{{a.needs, "other"}}
	for _, verb := range a.needs {
		others := slices.DeleteFunc(slices.Clone(access.Verbs), func(v access.Verb) bool { return v == verb })
		all = append(all, caller{others, a.may().tag})
	}
	return all
}

// Whichever face is asked, the same rights are wanted, and the audit log has the same of it.
func TestFacesAgreeOnWhatPeopleDo(t *testing.T) {
	t.Parallel()
	var callers []caller
	for _, a := range acts {
		callers = append(append(callers, a.may()), a.mayNot()...)
	}
	f := newFaces(t, callers...)
	for _, a := range acts {
		for _, face := range []struct {
			name string
			has  bool
			ask  func(act, caller) error
		}{
			{"api", a.api[0] != "", f.api}, {"dashboard", a.page[0] != "", f.page}, {"command", a.cmd != "", f.command},
		} {
			if !face.has {
				continue
			}
			a := f.on(a)
			for _, c := range a.mayNot() {
				if face.name == "command" {
					break // who runs it may do everything
				}
				if err := face.ask(a, c); !errors.Is(err, errRefused) {
					t.Errorf("%s of %q by %v: %v", face.name, a.entry, c, err)
				}
			}
			if got := f.entries(face.name); len(got) > 0 {
				t.Errorf("the audit log has of what the %s has refused %q", face.name, got)
			}
			if err := face.ask(a, a.may()); err != nil {
				t.Errorf("%s of %q: %v", face.name, a.entry, err)
			}
			if got := f.entries(face.name); len(got) != 1 || got[0] != a.entry {
				t.Errorf("the audit log has of the %s %q, want %q", face.name, got, a.entry)
			}
		}
	}
}

// faces are the three on one database.
type faces struct {
	*shell
	service servertest.Client
	pages   http.Handler
	user    dashboard.User
	tasks   *scheduler.Scheduler
	tokens  map[string]string // by their callers
	seen    int64             // the newest entry
	keys    int
}

// newFaces returns them for callers that are known to all: a service knows a token after up to two seconds.
func newFaces(t *testing.T, callers ...caller) *faces {
	f := &faces{shell: newShell(t), tokens: map[string]string{}}
	f.ok("migrate", "up")
	for _, c := range callers {
		if verbs, tag, _ := strings.Cut(c.String(), " "); f.tokens[c.String()] == "" {
			f.tokens[c.String()] = strings.TrimSpace(f.ok("token", "create", fmt.Sprint("token", len(f.tokens)),
				"--tags", tag, "--verbs", verbs))
		}
	}
	f.tasks = servertest.Open(t, f.dsn, scheduler.Config{})
	servertest.OK(t, f.tasks.Start(t.Context()))
	c := config.Default()
	c.DSN, c.Server.Listen, c.Server.Auth = f.dsn, "127.0.0.1:0", "token"
	s, err := server.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	servertest.OK(t, err)
	servertest.Run(t, s)
	f.service = servertest.Client{TB: t, URL: s.URL()}
	f.pages, err = dashboard.New(f.tasks, dashboard.Options{
		Who: func(*http.Request) (dashboard.User, error) { return f.user, nil }, Log: slog.New(slog.DiscardHandler),
	})
	servertest.OK(t, err)
	return f
}

// on is the act on what is made for it.
func (f *faces) on(a act) act {
	f.t.Helper()
	f.keys++
	names := []string{"{key}", fmt.Sprint("k", f.keys)}
	for _, name := range []string{"{id}", "{failed}", "{keyed}"} {
		keyed := name == "{keyed}" && strings.Contains(a.api[2], "{key}")
		if !keyed && !strings.Contains(a.entry, name) {
			continue
		}
		id, err := f.tasks.SaveDelayTask(f.t.Context(), a.may().tag, 1, time.Hour,
			delaytask.WithKey(map[string]string{"{keyed}": names[1]}[name]))
		servertest.OK(f.t, err)
		if name == "{failed}" {
			servertest.Exec(f.t, f.dsn, "UPDATE delay_task_message SET status = ? WHERE id = ?", row.Failed, id)
		}
		names = append(names, name, strconv.FormatInt(id, 10))
	}
	for _, name := range []string{"{s}", "{paused}"} {
		if !strings.Contains(a.entry, name) {
			continue
		}
		s, err := f.tasks.SaveSchedule(f.t.Context(), fmt.Sprint("s", f.keys), delaytask.Cron("@yearly", ""),
			a.may().tag, `{"url":"https://example.com/"}`)
		servertest.OK(f.t, err)
		if name == "{paused}" {
			servertest.OK(f.t, f.tasks.PauseSchedule(f.t.Context(), s.Name))
		}
		names = append(names, name, s.Name)
	}
	r := strings.NewReplacer(names...)
	for _, text := range []*string{&a.api[1], &a.api[2], &a.page[0], &a.page[1], &a.cmd, &a.entry} {
		*text = r.Replace(*text)
	}
	return a
}

// entries are the new ones of the audit log.
func (f *faces) entries(via string) (lines []string) {
	f.t.Helper()
	var page report.AuditPage
	servertest.Eventually(f.t, "what was begun has ended", func() (ended bool) {
		var err error
		page, err = f.tasks.Audit(f.t.Context(), report.AuditFilter{Limit: 10})
		servertest.OK(f.t, err)
		return !slices.ContainsFunc(page.Entries, func(e report.AuditEntry) bool { return e.Outcome == "" })
	})
	before := f.seen
	for _, e := range page.Entries {
		if e.ID <= before || strings.HasPrefix(e.Action, "token.") {
			continue
		}
		f.seen = max(f.seen, e.ID)
		detail, _, bounded := strings.Cut(e.Detail, "as_of=")
		if bounded {
			detail += "as_of=*"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d %s", e.Action, e.Target, e.Tag, e.Outcome, e.Tasks, detail))
		if e.Via != via || e.Who == "" {
			f.t.Errorf("the entry is by %q via %s, want %s", e.Who, e.Via, via)
		}
	}
	return lines
}

var errRefused = errors.New("refused")

func answered(status int, text string) error {
	switch {
	case status == http.StatusForbidden, status == http.StatusNotFound:
		return errRefused
	case status >= http.StatusBadRequest:
		return fmt.Errorf("%d %.500s", status, text)
	default:
		return nil
	}
}

func (f *faces) api(a act, c caller) error {
	got := f.service.Call(a.api[0], a.api[1], a.api[2], "Authorization", "Bearer "+f.tokens[c.String()])
	return answered(got.Status, got.Text)
}

func (f *faces) page(a act, c caller) error {
	f.user = dashboard.User{Name: "ann", Tags: []string{c.tag}}
	for _, v := range c.verbs {
		f.user.Verbs = append(f.user.Verbs, string(v))
	}
	form, err := url.ParseQuery(a.page[1])
	servertest.OK(f.t, err)
	r := httptest.NewRequestWithContext(f.t.Context(), "POST", a.page[0], strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	f.pages.ServeHTTP(w, r)
	return answered(w.Code, w.Body.String())
}

func (f *faces) command(a act, _ caller) error {
	if r := f.run(strings.Fields(a.cmd)...); r.code != exitDone {
		return errors.New(r.stderr)
	}
	return nil
}
