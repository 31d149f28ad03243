package api

import (
	"net/url"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// at is the path of a schedule.
func at(name, below string) string { return schedulesPath + "/" + url.PathEscape(name) + below }

const yearly = `{"lines":["@yearly"],"tag":"theirs","body":"secret"}`

// TestATokenReachesSchedulesOfItsTagsOnly requests a schedule of another tag on every route.
func TestATokenReachesSchedulesOfItsTagsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, mine := s.token("all", "*", access.All), s.token("mine", "mine", access.All)
	s.Want(200, "", "PUT", at("report/theirs", ""), yearly, all...)
	for _, c := range [][3]string{
		{"PUT", "report/theirs", strings.Replace(yearly, "theirs", "mine", 1)},
		{"PUT", "new", yearly},
	} {
		if p := s.Want(403, wire.CodeForbidden, c[0], at(c[1], ""), c[2], mine...); strings.Contains(p.Text, "secret") {
			t.Errorf("%v: %s", c, p.Text)
		}
	}
	for _, c := range [][3]string{
		{"GET", ""}, {"DELETE", ""}, {"GET", "/ticks"}, {"POST", "/pause", `{"reason":"x"}`}, {"POST", "/resume"},
		{"POST", "/reset"}, {"POST", "/skip"}, {"POST", "/trigger", `{"beside":true}`},
		{"POST", "/backfill", `{"from":"2020-01-01T00:00:00Z","to":"2022-01-01T00:00:00Z"}`},
	} {
		foreign := s.Want(404, wire.CodeScheduleNotFound, c[0], at("report/theirs", c[1]), c[2], mine...)
		missing := s.Want(404, wire.CodeScheduleNotFound, c[0], at("report/nobody", c[1]), c[2], mine...)
		if strings.Replace(foreign.Text, "theirs", "nobody", 1) != missing.Text {
			t.Errorf("%v of another tag: %s, unknown: %s", c, foreign.Text, missing.Text)
		}
	}
	got := ok[wire.Schedule](s, 200, "GET", at("report/theirs", ""), "", all...)
	if got.Version != 0 || got.State != "active" || got.Tag != "theirs" {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"a", "z"} {
		s.Want(200, "", "PUT", at(name, ""), `{"lines":["@yearly"],"tag":"mine"}`, mine...)
	}
	for token, want := range map[string]string{"all": "a report/theirs|z", "mine": "a z|"} {
		header := map[string][]string{"all": all, "mine": mine}[token]
		page := ok[wire.SchedulePage](s, 200, "GET", schedulesPath+"?limit=2", "", header...)
		names, last := "", ""
		for _, s := range page.Schedules {
			names += " " + s.Name
		}
		if page.Next != "" {
			next := schedulesPath + "?limit=2&after=" + url.QueryEscape(page.Next)
			last = ok[wire.SchedulePage](s, 200, "GET", next, "", header...).Schedules[0].Name
		}
		if strings.TrimSpace(names)+"|"+last != want {
			t.Errorf("%s sees %s, then %s", token, names, last)
		}
	}
}

func TestASchedulesDefinitionIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded, func(c *Config) {
		c.Check = func(tag string, body []byte) error {
			if tag == access.HTTPTag && !strings.Contains(string(body), "example.com") {
				return wire.NewProblem(400, wire.CodeInvalidAddress, "no such address")
			}
			return nil
		}
	})
	define := s.token("define", "*", access.Schedule)
	both := s.token("both", "*", access.Schedule, access.SaveHTTP)
	saver := s.token("saver", "*", access.Save, access.SaveHTTP, access.Change)
	reader := s.token("reader", "*", access.Read, access.Bodies)
	const call = `{"lines":["@yearly"],"tag":"http","body":{"url":"https://example.com/"}}`
	s.Want(403, wire.CodeForbidden, "PUT", at("call", ""), call, define...)
	s.Want(403, wire.CodeForbidden, "PUT", at("call", ""), call, saver...)
	s.Want(400, wire.CodeInvalidAddress, "PUT", at("call", ""), strings.Replace(call, "example.com", "x", 1), both...)
	s.Want(400, wire.CodeInvalidAddress, "PUT", at("call", ""), `{"lines":["@yearly"],"tag":"http"}`, both...)
	shown := ok[wire.Schedule](s, 200, "PUT", at("call", ""), call, both...)
	if shown.Name != "call" || shown.NextTick.IsZero() || !shown.Created.IsZero() || shown.Bytes() != nil {
		t.Errorf("a caller without Read sees %+v", shown)
	}
	got := ok[wire.Schedule](s, 200, "GET", at("call", ""), "", reader...)
	if string(got.Bytes()) != `{"url":"https://example.com/"}` {
		t.Errorf("got %+v", got)
	}
	for query, body := range map[string]string{"": "", "?bodies=true": `{"url":"https://example.com/"}`} {
		page := ok[wire.SchedulePage](s, 200, "GET", schedulesPath+query, "", reader...)
		if len(page.Schedules) != 1 || string(page.Schedules[0].Bytes()) != body {
			t.Errorf("%q: %+v", query, page)
		}
	}
	s.Want(403, wire.CodeForbidden, "DELETE", at("call", ""), "", saver...)
	// What calls addresses is theirs who may choose these.
	s.Want(403, wire.CodeForbidden, "DELETE", at("call", ""), "", define...)
	s.Want(403, wire.CodeForbidden, "PUT", at("call", ""), `{"lines":["@yearly"],"tag":"t"}`, define...)
	s.Want(200, "", "PUT", at("call", ""), `{"lines":["@yearly"],"tag":"t"}`, both...)
	s.Want(204, "", "DELETE", at("call", ""), "", define...)
}

// An edit replaces what its caller has read, and a create nothing.
func TestASaveOfAScheduleMayHaveAPrecondition(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const other = `{"lines":["@daily"],"tag":"t"}`
	s.Want(412, wire.CodeScheduleChanged, "PUT", at("x", ""), other, "If-Match", `"0"`)
	s.Want(200, "", "PUT", at("x", ""), yearly, "If-None-Match", "*")
	s.Want(412, wire.CodeScheduleExists, "PUT", at("x", ""), yearly, "If-None-Match", "*")
	read := s.Want(200, "", "GET", at("x", ""), "").Header.Get("ETag")
	saved := s.Want(200, "", "PUT", at("x", ""), other, "If-Match", read).Header.Get("ETag")
	if read != `"0"` || saved != `"1"` {
		t.Errorf("version %s, then %s", read, saved)
	}
	for _, version := range []string{read, `"9"`} { // one that was replaced, and one of another schedule of the name
		s.Want(412, wire.CodeScheduleChanged, "PUT", at("x", ""), yearly, "If-Match", version)
	}
	for _, wrong := range []string{"0", "*", `W/"0"`, `"a"`, `"-1"`, `"`, `"0", "1"`} {
		s.Want(400, wire.CodeInvalidParameter, "PUT", at("x", ""), yearly, "If-Match", wrong)
	}
	s.Want(400, wire.CodeInvalidParameter, "PUT", at("x", ""), yearly, "If-None-Match", `"0"`)
	if got := ok[wire.Schedule](s, 200, "GET", at("x", ""), ""); got.Version != 1 || got.Tag != "t" {
		t.Errorf("stored %+v", got)
	}
}

func TestSchedulesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Want(200, "", "PUT", at("t", ""), `{"lines":["0 0 1 1 *"],"tag":"t"}`)
	put := func(members ...string) []string {
		return around("PUT "+at("x", "")+` {"lines":["@daily"],"tag":"t",`, "}", members...)
	}
	long := strings.Repeat("x", 97)
	for _, b := range []bad{
		{400, wire.CodeInvalidScheduleName, around("PUT ", " "+yearly, at("a b", ""), at(long, ""), at("é", ""),
			at("x/backfill/1", ""), at("%", ""), at("\x00", ""))},
		{400, wire.CodeInvalidTag, []string{"PUT " + at("x", "") + ` {"lines":["@daily"]}`}},
		{400, wire.CodeInvalidSpec, []string{"PUT " + at("x", "") + ` {"tag":"t"}`,
			"PUT " + at("x", "") + ` {"tag":"t","lines":["@at 2020-01-01T00:00:00Z"]}`}},
		{400, wire.CodeInvalidOption, put(`"overlap":"x"`, `"missed":"x"`, `"max_open":2`, `"start_within":1`,
			`"jitter":"25h"`, `"pause_after":-1`, `"max_runs":-1`, `"keep_runs":-1`,
			`"overlap":"allow","max_open":10001`, `"pause_after":2147483648`, `"max_runs":2147483648`)},
		{400, wire.CodeInvalidParameter, put(`"app":"é"`)},
		{400, wire.CodeInvalidHeaders, put(`"headers":{"Delaytask-App":"x"}`)},
		{400, wire.CodeInvalidTTR, put(`"ttr":"25h"`)},
		{400, wire.CodeInvalidMaxAttempts, put(`"max_attempts":-1`)},
		{400, wire.CodeInvalidPriority, put(`"priority":101`)},
		{400, wire.CodeInvalidBody, put(`"body":1,"body_text":""`)},
		{400, wire.CodeInvalidJSON, put(`"key":"k"`, `"at":"2030-01-01T00:00:00Z"`, `"jitter":null`, `"overlap":1`)},
		{413, wire.CodeBodyTooLarge, put(longBody)},
		{404, wire.CodeScheduleNotFound, []string{"GET " + at("none", ""), "DELETE " + at(long, ""),
			"GET " + at("\x00", "/ticks"), "POST " + at("é", "/resume"), "POST " + at("x", "/pause")}},
		{409, wire.CodeScheduleState, []string{"POST " + at("t", "/resume")}},
		{400, wire.CodeInvalidRange, around("POST "+at("t", "/backfill")+" ", "", `{}`,
			`{"from":"2021-02-01T00:00:00Z","to":"2021-03-01T00:00:00Z"}`,
			`{"from":"2021-02-01T00:00:00Z","to":"2221-03-01T00:00:00Z"}`)},
		{400, wire.CodeInvalidOption, []string{"POST " + at("t", "/backfill") +
			` {"from":1600000000,"to":1700000000,"at_once":1001}`, "GET " + schedulesPath + "?limit=-1",
			"GET " + at("t", "/ticks") + "?limit=-1"}},
		{400, wire.CodeInvalidTime, []string{"GET " + at("t", "/ticks") + "?before=now"}},
		{400, wire.CodeInvalidParameter, []string{"GET " + schedulesPath + "?tag=t"}},
		{404, wire.CodeNoSuchRoute, []string{"GET " + schedulesPath + "/a/b"}},
		{405, wire.CodeMethodNotAllowed, []string{"PATCH " + at("t", ""), "POST " + at("t", "/ticks")}},
	} {
		for _, request := range b.requests {
			method, rest, _ := strings.Cut(request, " ")
			path, body, _ := strings.Cut(rest, " ")
			if p := s.Want(b.status, b.code, method, path, body); len(p.Detail) > 400 {
				t.Errorf("%.60s: the detail has %d bytes", request, len(p.Detail))
			}
		}
	}
	servertest.Exec(t, s.dsn, "UPDATE delay_task_schedule SET owner = 'app'")
	s.Want(409, wire.CodeScheduleOwned, "PUT", at("t", ""), yearly)
	s.Want(409, wire.CodeScheduleOwned, "DELETE", at("t", ""), "")
	servertest.Exec(t, s.dsn, "UPDATE delay_task_schedule SET max_runs = 4294967295")
	s.Want(409, wire.CodeBroken, "GET", at("t", ""), "")
	s.Want(409, wire.CodeBroken, "POST", at("t", "/pause"), "")
}
