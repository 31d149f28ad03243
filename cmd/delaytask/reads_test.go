package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

const (
	readTag = "shown.tag"
	secret  = "hunter2"
)

// read is what people look at, and how each face that has it is asked for it. {id} is a failed task and {s} a paused
// schedule of the tag, both with a secret in each of their texts.
type read struct {
	needs []access.Verb
	or    access.Verb // that does as well
	api   string
	raw   bool // the API shows the secret where it is asked to
	page  string
	cmd   string
	shows string // what a caller with the right sees
}

var seen = []access.Verb{access.Read}

var observed = []access.Verb{access.Observe}

var looks = []read{
	{needs: seen, api: "/v1/tasks/{id}", raw: true, page: "/tasks/{id}", cmd: "get {id}", shows: "cannot pay"},
	{needs: seen, api: "/v1/tasks?bodies=true&tag=" + readTag, raw: true, page: "/tasks?tag=" + readTag,
		cmd: "list --json --bodies --tag " + readTag, shows: "cannot pay"},
	{needs: seen, api: "/v1/tasks/{id}/explain", raw: true, cmd: "explain {id} --json", shows: "cannot pay"},
	{needs: []access.Verb{access.Read, access.Bodies}, api: "/v1/tasks/{id}/body", raw: true, cmd: "get {id} --body",
		shows: "card"},
	{needs: seen, api: "/v1/failures?tag=" + readTag, raw: true, page: "/failures?tag=" + readTag,
		cmd: "failures --tag " + readTag, shows: "cannot pay"},
	{needs: seen, api: "/v1/tags", shows: readTag},
	{needs: seen, api: "/v1/tags/" + readTag + "/lateness", shows: readTag},
	{needs: seen, api: "/v1/schedules/{s}", raw: true, page: "/schedules/{s}", cmd: "schedule show {s}",
		shows: "moves"},
	{needs: seen, api: "/v1/schedules?bodies=true", raw: true, page: "/schedules", cmd: "schedule list --json",
		shows: "moves"},
	{needs: seen, api: "/v1/schedules/{s}/explain", raw: true, cmd: "schedule explain {s} --json", shows: "moves"},
	{needs: seen, api: "/v1/schedules/{s}/ticks", cmd: "schedule ticks {s} --json", shows: "["},
	{needs: seen, or: access.Change, api: "/v1/bulk", page: "/changes", cmd: "bulk list", shows: readTag},
	{needs: observed, or: access.Operate, api: "/v1/stats", page: "/tags", cmd: "stats", shows: readTag},
	{needs: observed, or: access.Operate, api: "/v1/overview", page: "/", cmd: "overview --json", shows: readTag},
	{needs: observed, or: access.Operate, api: "/v1/forecast", page: "/load", cmd: "forecast", shows: readTag},
	{needs: observed, or: access.Operate, api: "/v1/series?tag=" + readTag, page: "/tags/" + readTag,
		cmd: "stats --json --since 1h --tag " + readTag, shows: readTag},
	{needs: observed, or: access.Operate, api: "/v1/nodes", cmd: "nodes", shows: readTag},
	{needs: []access.Verb{access.Audit}, api: "/v1/audit", page: "/audit", cmd: "audit", shows: "cannot fly"},
}

// callers are who may just look, and those that lack one of the rights, or have them to another tag.
func (r *read) callers() (may caller, mayNot []caller) {
	mayNot = []caller{{r.needs, "other"}}
	for _, verb := range r.needs {
		mayNot = append(mayNot, caller{slices.DeleteFunc(slices.Clone(access.Verbs), func(v access.Verb) bool {
			return v == verb || v == r.or
		}), readTag})
	}
	return caller{r.needs, readTag}, mayNot
}

var everything = caller{access.Verbs, readTag}

// Whichever face is asked, who lacks the right sees nothing, and who has it sees no secret without asking for it.
func TestFacesAgreeOnWhatPeopleSee(t *testing.T) {
	t.Parallel()
	callers := []caller{everything}
	for _, r := range looks {
		may, mayNot := r.callers()
		callers = append(append(callers, may), mayNot...)
	}
	f := newFaces(t, callers...)
	names := f.toSee()
	for _, r := range looks {
		may, mayNot := r.callers()
		for _, face := range []struct {
			name, at string
			see      func(string, caller) (string, error)
		}{{"api", r.api, f.apiShows}, {"dashboard", r.page, f.pageShows}, {"command", r.cmd, f.commandShows}} {
			if face.at == "" {
				continue
			}
			at := names.Replace(face.at)
			for _, c := range mayNot {
				if face.name == "command" {
					break // who runs it may see everything
				}
				text, err := face.see(at, c)
				if err == nil && strings.Contains(text, r.shows) && !strings.HasSuffix(at, readTag) ||
					err != nil && !errors.Is(err, errRefused) {
					t.Errorf("%s %s by %v: %v %.300s", face.name, at, c, err, text)
				}
			}
			for _, c := range []caller{may, everything} {
				text, err := face.see(at, c)
				if err != nil || !strings.Contains(text, r.shows) || strings.Contains(text, secret) {
					t.Errorf("%s %s by %v: %v %s", face.name, at, c, err, text)
				}
			}
		}
		if r.raw {
			f.raw(names.Replace(r.api), may, slices.Contains(r.needs, access.Bodies))
		}
	}
}

// raw asks for secrets with the right to them, and without.
func (f *faces) raw(path string, may caller, alone bool) {
	f.t.Helper()
	path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "raw=true"
	if text, err := f.apiShows(path, everything); err != nil || !strings.Contains(text, secret) {
		f.t.Errorf("%s: %v %s", path, err, text)
	}
	if text, err := f.apiShows(path, may); !alone && !errors.Is(err, errRefused) {
		f.t.Errorf("%s without the verb bodies: %v %s", path, err, text)
	}
}

// toSee makes what is looked at.
func (f *faces) toSee() *strings.Replacer {
	f.t.Helper()
	ctx := f.t.Context()
	body := `{"card":1,"password":"` + secret + `"}`
	failed := func(text string) int64 {
		id, err := f.tasks.SaveDelayTask(ctx, readTag, body, 0, delaytask.WithHeader("password", secret))
		servertest.OK(f.t, err)
		servertest.Exec(f.t, f.dsn, "UPDATE delay_task_message SET status = ?, error_stack = ? WHERE id = ?",
			row.Failed, text, id)
		return id
	}
	id := failed("cannot pay: password=" + secret)
	failed("cannot fly: password=" + secret)
	_, err := f.tasks.SaveDelayTask(ctx, readTag, body, 30*time.Minute)
	servertest.OK(f.t, err)
	s, err := f.tasks.SaveSchedule(ctx, "looked-at", delaytask.Cron("@yearly", ""), readTag, body)
	servertest.OK(f.t, err)
	servertest.OK(f.t, f.tasks.PauseSchedule(ctx, s.Name, delaytask.Reason("moves, password="+secret)))
	f.ok("pause", readTag)
	f.ok("retry", "--tag", readTag, "--yes", "--error", "cannot fly: password="+secret)
	idle := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
	servertest.OK(f.t, f.tasks.Register(readTag, idle))
	servertest.Eventually(f.t, "a heartbeat names the tag", func() bool {
		return strings.Contains(f.ok("nodes"), readTag)
	})
	return strings.NewReplacer("{id}", strconv.FormatInt(id, 10), "{s}", s.Name)
}

func (f *faces) apiShows(path string, c caller) (string, error) {
	got := f.service.Call(http.MethodGet, path, "", "Authorization", "Bearer "+f.tokens[c.String()])
	return got.Text, answered(got.Status, got.Text)
}

func (f *faces) pageShows(path string, c caller) (string, error) {
	f.user = dashboard.User{Name: "ann", Tags: []string{c.tag}}
	for _, v := range c.verbs {
		f.user.Verbs = append(f.user.Verbs, string(v))
	}
	w := httptest.NewRecorder()
	f.pages.ServeHTTP(w, httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, path, http.NoBody))
	return w.Body.String(), answered(w.Code, w.Body.String())
}

func (f *faces) commandShows(line string, _ caller) (string, error) {
	r := f.run(strings.Fields(line)...)
	if r.code != exitDone {
		return "", fmt.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	return r.stdout, nil
}
