package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

func TestCallsWithoutATokenAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	old, good := s.token("old", "*", access.All), s.token("good", "*", access.All)
	servertest.Exec(t, s.dsn, "UPDATE delay_task_token SET expire_time = create_time WHERE name = 'old'")
	secret := strings.TrimPrefix(good[1], "Bearer ")
	for _, given := range []string{
		"", "Bearer", "Bearer ", "Bearer dt_", "Bearer dt_" + strings.Repeat("x", 43), old[1], "Basic dXNlcjpwYXNz",
		good[1] + "x", secret, "Bearer " + good[1],
	} {
		inQuery := "/v1/tags?token=" + secret + "&access_token=" + secret
		p := s.Want(401, wire.CodeUnauthorized, "GET", inQuery, "", "Authorization", given)
		if strings.Contains(p.Detail, "dt_") {
			t.Errorf("the answer holds the token: %+v", p)
		}
	}
	for _, route := range []string{
		"POST /v1/tasks", "POST /v1/tasks/batch", "GET /v1/tasks/1", "POST /v1/tags/t/pop", "GET /v1/nowhere",
		"GET /v1/", "PUT /v1/tasks",
	} {
		method, path, _ := strings.Cut(route, " ")
		if p := s.Want(401, wire.CodeUnauthorized, method, path, ""); p.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: nothing says how", route)
		}
	}
	s.Want(400, wire.CodeInvalidHeader, "GET", "/v1/tags", "", append(good, good...)...)
	s.Want(200, "", "GET", "/v1/tags", "", good...)
	s.Want(200, "", "GET", "/v1/tags", "", "Authorization", "bearer "+secret)
	for _, open := range []string{"/healthz", "/readyz", "/docs", "/openapi.json"} {
		s.Want(200, "", "GET", open, "")
	}
}

// TestATokenReachesItsTagsOnly requests a task and a receiver of another tag on every route.
func TestATokenReachesItsTagsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, mine := s.token("all", "*", access.All), s.token("mine", "mine,my.*,a", access.All)
	theirs := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"theirs","key":"k","body":"secret"}`, all...)
	popped := ok[wire.PopReply](s, 200, "POST", "/v1/tags/theirs/pop?wait=20s", "", all...).Tasks[0]
	later := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"theirs","key":"l","delay":"1h"}`, all...)
	token := `{"token":"` + popped.Token + `"`
	receiver := ok[wire.Receiver](s, 201, "POST", "/v1/receivers", register, all...)
	byID, byReceiver := "/v1/tasks/"+theirs.ID.String(), "/v1/receivers/"+receiver.ID.String()
	takenOver := strings.Replace(register, `"a","b"`, `"mine"`, 1)
	for _, c := range [][3]string{
		{"GET", "/v1/tags/theirs/keys/k"}, {"PATCH", "/v1/tags/theirs/keys/l", `{"body":1}`},
		{"DELETE", "/v1/tags/theirs/keys/l"},
		{"GET", "/v1/tags/theirs/keys/l/explain"}, {"GET", "/v1/tags/theirs/keys/none"},
		{"DELETE", "/v1/tags/theirs/keys/none"},
		{"POST", "/v1/tags/theirs/pop"}, {"POST", "/v1/pop?tag=mine&tag=theirs"},
		{"POST", "/v1/tasks", `{"tag":"theirs"}`}, {"POST", batchPath, `[{"tag":"mine"},{"tag":"theirs"}]`},
		{"POST", "/v1/tags/theirs/pause"}, {"POST", "/v1/tags/theirs/resume"}, {"GET", "/v1/tags/theirs/lateness"},
		{"GET", "/v1/forecast?tag=theirs"},
		{"GET", "/v1/tasks"}, {"GET", "/v1/tasks?tag=theirs"}, {"GET", "/v1/tasks?key=k"},
		{"POST", "/v1/receivers", register}, {"POST", "/v1/receivers", takenOver},
		{"POST", bulkPath, `{"action":"cancel","filter":{"tag":"theirs"}}`},
		{"POST", bulkPath, `{"action":"cancel","filter":{"late_by":"1h"},"dry_run":true}`},
		{"POST", bulkPath, `{"action":"cancel","all":true}`},
	} {
		if p := s.Want(403, wire.CodeForbidden, c[0], c[1], c[2], mine...); strings.Contains(p.Detail, "secret") {
			t.Errorf("%s %s: %s", c[0], c[1], p.Text)
		}
	}
	for _, c := range [][3]string{
		{"GET", byID}, {"PATCH", byID, `{"delay":1}`}, {"DELETE", byID}, {"POST", byID + "/retry"},
		{"GET", byID + "/explain"},
		{"PATCH", byID, `{"body":1}`}, {"DELETE", byID + "?only_pending=true"},
		{"POST", byID + "/finish", token + `}`}, {"POST", byID + "/fail", token + `,"error":"x"}`},
		{"POST", byID + "/release", token + `}`},
		{"POST", byID + "/touch", token + `,"ttr":"1m"}`},
		{"GET", byReceiver}, {"POST", byReceiver + "/heartbeat"}, {"DELETE", byReceiver},
	} {
		unknown := strings.NewReplacer(theirs.ID.String(), "424242", byReceiver, "/v1/receivers/424242")
		foreign := s.Want(404, wire.CodeNotFound, c[0], c[1], c[2], mine...)
		missing := s.Call(c[0], unknown.Replace(c[1]), unknown.Replace(c[2]), mine...)
		if unknown.Replace(foreign.Text) != missing.Text {
			t.Errorf("%s %s of another tag: %s, unknown: %d %s", c[0], c[1], foreign.Text, missing.Status, missing.Text)
		}
	}
	mixed := ok[wire.FinishBatchReply](s, 200, "POST", "/v1/tasks/finish",
		fmt.Sprintf(`{"tokens":["%s","1.1"]}`, popped.Token), mine...)
	if mixed.Results[0].Code != wire.CodeNotFound ||
		strings.Replace(mixed.Results[0].Detail, theirs.ID.String(), "1", 1) != mixed.Results[1].Detail {
		t.Errorf("got %+v", mixed)
	}
	for id, status := range map[wire.ID]delaytask.Status{theirs.ID: "executing", later.ID: "pending"} {
		if got := ok[wire.Task](s, 200, "GET", "/v1/tasks/"+id.String(), "", all...); got.Status != status {
			t.Errorf("%v is %s, want %s", id, got.Status, status)
		}
	}
	servertest.Eventually(t, "the tag is seen to be served", func() bool {
		return strings.Contains(s.Call("GET", "/v1/nodes", "", all...).Text, `"theirs"`)
	})
	for _, list := range []string{"/v1/tags", "/v1/stats", "/v1/forecast", "/v1/nodes", "/v1/receivers",
		"/v1/overview"} {
		if got := s.Want(200, "", "GET", list, "", mine...); strings.Contains(got.Text, "theirs") ||
			strings.Contains(got.Text, "shop") {
			t.Errorf("%s shows %s", list, got.Text)
		}
	}
	// All tags together would show what others do.
	s.Want(403, wire.CodeForbidden, "GET", "/v1/series", "", mine...)
	s.Want(403, wire.CodeForbidden, "GET", "/v1/series?tag=theirs", "", mine...)
	s.Want(403, wire.CodeForbidden, "GET", "/v1/series?tag=(other)", "", mine...)
	s.Want(200, "", "GET", "/v1/series?tag=my.own", "", mine...)
	s.Want(200, "", "GET", "/v1/series", "", all...)
	own := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"my.own"}`, mine...)
	token = ok[wire.PopReply](s, 200, "POST", "/v1/tags/my.own/pop?wait=20s", "", mine...).Tasks[0].Token
	s.Want(204, "", "POST", "/v1/tasks/"+own.ID.String()+"/finish", `{"token":"`+token+`"}`, mine...)

	servertest.Exec(t, s.dsn, "UPDATE delay_task_worker SET expire_time = create_time")
	s.Want(403, wire.CodeForbidden, "POST", "/v1/receivers", takenOver, mine...) // its secret would sign the calls
	s.Want(201, "", "POST", "/v1/receivers", takenOver, all...)
}

// TestARowWithoutATagIsForThoseOfAllTags: only plain SQL makes one, and an operator must be able to see and end it.
func TestARowWithoutATagIsForThoseOfAllTags(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, mine := s.token("all", "*", access.All), s.token("mine", "my.*", access.All)
	servertest.Exec(t, s.dsn,
		"INSERT INTO delay_task_message (id, tag, message_body, delay_time) VALUES (77, '', '1', 3600000)")
	s.Want(404, wire.CodeNotFound, "GET", "/v1/tasks/77", "", mine...)
	s.Want(404, wire.CodeNotFound, "DELETE", "/v1/tasks/77", "", mine...)
	if stats := ok[wire.Stats](s, 200, "GET", "/v1/stats", "", mine...); len(stats.Tags) != 0 {
		t.Errorf("it sees %+v", stats)
	}
	s.Want(200, "", "GET", "/v1/tasks/77/explain", "", all...)
	s.Call("DELETE", "/v1/tasks/77", "", all...)
	if got := ok[wire.Task](s, 200, "GET", "/v1/tasks/77", "", all...); got.Status != "cancelled" {
		t.Errorf("got %+v", got)
	}
}

func TestMetricsNameTagsToCallersWithTheRight(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		s := newSite(t, guarded, func(c *Config) {
			c.OpenMetrics = open
			c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "a tag") })
		})
		f := func(want int, header ...string) {
			t.Helper()
			if open {
				want = 200
			}
			if got := s.Call("GET", "/metrics", "", header...); got.Status != want {
				t.Errorf("%v: %d %s, want %d", header, got.Status, got.Text, want)
			}
		}
		reader, some := s.token("reader", "*", access.Read, access.Work), s.token("some", "some.*", access.Metrics)
		prometheus, operator := s.token("prometheus", "*", access.Metrics), s.token("operator", "*", access.Operate)
		f(401)
		f(401, "Authorization", "Bearer dt_"+strings.Repeat("x", 43))
		f(403, reader...)
		f(403, some...)
		f(200, prometheus...)
		f(200, operator...)
	}
}

// TestATokenDoesItsVerbsOnly makes every request with each verb alone.
func TestATokenDoesItsVerbsOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all := s.token("all", "*", access.All)
	calls := map[access.Verb][][3]string{
		access.Save: {{"POST", "/v1/tasks", `{"tag":"t"}`}, {"POST", batchPath, `[{"tag":"t"}]`},
			{"POST", "/v1/wake", `{"tags":["t"]}`}},
		access.SaveHTTP: {{"POST", "/v1/tasks", `{"tag":"http"}`}, {"POST", batchPath, `[{"tag":"http"}]`}},
		access.Read: {{"GET", "/v1/tasks"}, {"GET", "/v1/tasks/ID"}, {"GET", "/v1/tasks/ID/explain"},
			{"GET", "/v1/tags"}, {"GET", "/v1/failures"}, {"GET", bulkPath}, {"GET", bulkPath + "/none"},
			{"GET", "/v1/tags/t/lateness"}, {"GET", "/v1/schedules"}, {"GET", "/v1/schedules/s"},
			{"GET", "/v1/schedules/s/ticks"}},
		access.Change: {{"PATCH", "/v1/tasks/ID", `{"delay":"2h"}`}, {"POST", "/v1/tasks/ID/retry"},
			{"POST", bulkPath, `{"action":"retry","filter":{"tag":"t"}}`}, {"POST", bulkPath + "/none/stop"}},
		access.Work: {{"POST", "/v1/tags/t/pop"}, {"POST", "/v1/pop?tag=t"},
			{"POST", "/v1/tasks/ID/finish", `{"token":"ID.1"}`},
			{"POST", "/v1/tasks/finish", `{"tokens":["ID.1"]}`}},
		access.Observe: {{"GET", "/v1/nodes"}, {"GET", "/v1/stats"}, {"GET", "/v1/series"},
			{"GET", "/v1/overview"}},
		access.Operate: {{"POST", "/v1/tags/u/pause"}, {"POST", "/v1/tags/u/resume"},
			{"POST", "/v1/schedules/s/pause"}, {"POST", "/v1/schedules/s/resume"},
			{"POST", "/v1/schedules/s/reset"}, {"POST", "/v1/schedules/s/skip"},
			{"POST", "/v1/schedules/s/trigger"},
			{"POST", "/v1/schedules/s/backfill", `{"from":1600000000,"to":1700000000}`}},
		access.Schedule: {{"PUT", "/v1/schedules/s", `{"lines":["@yearly"],"tag":"t"}`},
			{"DELETE", "/v1/schedules/s"}},
		access.Audit:    {{"GET", "/v1/audit"}},
		access.Register: {{"GET", "/v1/receivers"}, {"POST", "/v1/receivers", register}},
	}
	tokens := map[access.Verb][]string{}
	for _, v := range access.Verbs {
		tokens[v] = s.token(string(v), "*", v)
	}
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"t","delay":"1h"}`, all...).ID.String()
	for _, may := range access.Verbs {
		for verb, requests := range calls {
			for _, c := range requests {
				got := s.Call(c[0], strings.ReplaceAll(c[1], "ID", id), strings.ReplaceAll(c[2], "ID", id),
					tokens[may]...)
				seen := c[1] == "/v1/receivers" && c[0] == "GET"                     // by who observes, too
				follows := strings.HasPrefix(c[1], bulkPath) && may == access.Change // what it has begun
				allowed := verb == may || follows || (verb == access.Observe || seen) && may == access.Operate ||
					seen && may == access.Observe
				if (got.Status == 403) == allowed {
					t.Errorf("%s with %s: %s %s: %d %.200s", verb, may, c[0], c[1], got.Status, got.Text)
				}
			}
		}
	}
}

func TestBodiesAreARightOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, read := s.token("all", "*", access.All), s.token("read", "*", access.Read, access.Save)
	both := s.token("both", "*", access.Read, access.Bodies)
	some := s.token("some", "other.*", access.Read, access.Bodies)
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"t","key":"k","delay":"1h","body":"secret"}`,
		all...).ID.String()
	s.Want(200, "", "PUT", "/v1/schedules/s", `{"lines":["@yearly"],"tag":"t","body":"secret"}`, all...)
	for _, path := range []string{
		"/v1/tasks/" + id, "/v1/tasks/" + id + "/explain", "/v1/tasks?bodies=true", "/v1/tasks?tag=t&key=k&bodies=true",
		"/v1/tags/t/keys/k", "/v1/schedules/s", "/v1/schedules?bodies=true", "/v1/schedules/s/explain",
	} {
		if got := s.Want(200, "", "GET", path, "", read...); strings.Contains(got.Text, "secret") {
			t.Errorf("read sees %s: %s", path, got.Text)
		}
		hasBody := path != "/v1/tasks/"+id+"/explain" // which reads the task without its body
		if got := s.Want(200, "", "GET", path, "", both...); strings.Contains(got.Text, "secret") != hasBody {
			t.Errorf("bodies does not see %s: %s", path, got.Text)
		}
		if got := s.Call("GET", path, "", some...); strings.Contains(got.Text, "secret") {
			t.Errorf("who may see bodies of other tags sees %s: %s", path, got.Text)
		}
	}
	met := s.Want(200, "", "POST", "/v1/tasks", `{"tag":"t","key":"k"}`, read...).Text
	if strings.Contains(met, "secret") {
		t.Errorf("a save that meets the task sees %s", met)
	}
}

func TestChangingWhereACallGoesIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	change, both := s.token("change", "*", access.Change), s.token("both", "*", access.Change, access.SaveHTTP)
	saved := ok[wire.Saved](s, 201, "POST", "/v1/tasks",
		`{"tag":"http","delay":"1h","body":{"url":"https://example.com/"}}`, both...)
	path := "/v1/tasks/" + saved.ID.String()
	s.Want(403, wire.CodeForbidden, "PATCH", path, `{"body":{"url":"https://example.org/"}}`, change...)
	s.Want(403, wire.CodeForbidden, "PATCH", path, `{"delay":1,"body":{"url":"https://example.org/"}}`, change...)
	s.Want(200, "", "PATCH", path, `{"delay":"2h"}`, change...)
	s.Want(200, "", "PATCH", path, `{"body":{"url":"https://example.org/"}}`, both...)
}

func TestACallerThatMayOnlySaveSeesNoOthersTask(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, save := s.token("all", "*", access.All), s.token("save", "*", access.Save)
	both := s.token("both", "*", access.Save, access.Change)
	first := ok[wire.Saved](s, 201, "POST", "/v1/tasks",
		`{"tag":"t","key":"k","body":"secret","headers":{"a":"secret"}}`, all...)
	got := s.Want(200, "", "POST", "/v1/tasks", `{"tag":"t","key":"k"}`, save...)
	if strings.Contains(got.Text, "secret") || !strings.Contains(got.Text, first.ID.String()) {
		t.Errorf("got %s", got.Text)
	}
	const replace = `{"tag":"t","key":"k","on_conflict":"replace_time"}`
	s.Want(403, wire.CodeForbidden, "POST", "/v1/tasks", replace, save...)
	s.Want(403, wire.CodeForbidden, "POST", batchPath, "["+replace+"]", save...)
	got = s.Want(200, "", "POST", "/v1/tasks", replace, both...)
	if strings.Contains(got.Text, "secret") || !strings.Contains(got.Text, `"rescheduled":true`) {
		t.Errorf("got %s", got.Text)
	}
}

// unreachable is a database of tokens that does not answer.
type unreachable struct{ open bool }

func (u unreachable) Asked(context.Context) (bool, error) {
	if u.open {
		return false, access.ErrUnavailable
	}
	return true, nil
}

func (unreachable) Missing(context.Context) (bool, error) {
	return false, fmt.Errorf("%w: dial tcp db.internal:3306: refused", access.ErrUnavailable)
}

func (unreachable) Check(context.Context, string) (access.Caller, error) {
	return access.Caller{}, fmt.Errorf("%w: dial tcp db.internal:3306: refused", access.ErrUnavailable)
}

func TestTokensThatCannotBeCheckedAreRefused(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		s := newSite(t, func(c *Config) { c.Tokens = unreachable{open} })
		for _, path := range []string{"/v1/tags", "/readyz"} {
			p := s.Want(503, wire.CodeUnavailable, "GET", path, "", "Authorization", "Bearer x")
			if strings.Contains(p.Detail, "db.internal") {
				t.Errorf("the answer names the database: %s", p.Detail)
			}
		}
	}
}

// revoked is a token that is known to the first request alone, and is revoked while that waits.
type revoked struct{ seen atomic.Bool }

func (*revoked) Asked(context.Context) (bool, error)   { return true, nil }
func (*revoked) Missing(context.Context) (bool, error) { return false, nil }

func (r *revoked) Check(context.Context, string) (access.Caller, error) {
	if r.seen.Swap(true) {
		return access.Caller{}, access.ErrUnauthorized
	}
	return access.Everyone(), nil
}

func TestATokenThatIsRevokedDuringAWaitGetsNoTask(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Tokens = &revoked{} })
	id, err := s.scheduler.SaveDelayTask(t.Context(), "t", "secret", time.Hour)
	servertest.OK(t, err)
	path := "/v1/tasks/" + wire.ID(id).String()
	s.Want(401, wire.CodeUnauthorized, "GET", path+"?wait=10ms", "", "Authorization", "Bearer x")
}

func TestWhatATagDemandsIsAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) {
		c.Check = func(tag string, _ []byte) error {
			if tag == "picky" {
				return wire.NewProblem(400, wire.CodeInvalidAddress, "no such address")
			}
			return nil
		}
	})
	s.Want(400, wire.CodeInvalidAddress, "POST", "/v1/tasks", `{"tag":"picky"}`)
	s.Want(400, wire.CodeInvalidAddress, "POST", "/v1/tasks", `{"tag":"picky"}`, "Idempotency-Key", "k")
	p := s.Want(400, wire.CodeInvalidAddress, "POST", batchPath, `[{"tag":"t"},{"tag":"picky"}]`)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body[1]" || s.count() != 0 {
		t.Errorf("got %+v, %d tasks are stored", p, s.count())
	}
}

// TestABatchOfEndsReadsItsTagsTogether counts the reads, of which the engine makes a few.
func TestABatchOfEndsReadsItsTagsTogether(t *testing.T) {
	t.Parallel()
	var counted *faultstore.Store
	s := newSite(t, guarded, func(c *Config) {
		counted = faultstore.New(core.Of(c.Scheduler).Store())
		cfg := scheduler.Config{Logger: slog.New(slog.DiscardHandler)}
		core.BuildOn(&cfg, counted,
			func(cfg engine.Config) (*engine.Engine, error) { return engine.New(t.Context(), cfg) })
		made, err := scheduler.New(t.Context(), nil, cfg)
		servertest.OK(t, err)
		c.Scheduler = made
		t.Cleanup(func() { servertest.Stop(t, c.Scheduler) })
		servertest.OK(t, c.Scheduler.Start(t.Context()))
	})
	all, mine := s.token("all", "*", access.Save, access.Work), s.token("mine", "mine", access.Work)
	const n = 200
	s.Want(200, "", "POST", batchPath, "["+strings.Repeat(`{"tag":"mine"},`, n)+`{"tag":"theirs"}]`, all...)
	tokens := []string{"1.1", ok[wire.PopReply](s, 200, "POST", "/v1/tags/theirs/pop?wait=20s", "",
		all...).Tasks[0].Token}
	for len(tokens) < 2+n {
		for _, p := range ok[wire.PopReply](s, 200, "POST", "/v1/tags/mine/pop?wait=20s&max=1000&ttr=1h", "",
			mine...).Tasks {
			tokens = append(tokens, p.Token)
		}
	}
	reads := func() int { return counted.CallsOf("Get") + counted.CallsOf("States") + counted.CallsOf("List") }
	before := reads()
	done := ok[wire.FinishBatchReply](s, 200, "POST", "/v1/tasks/finish",
		`{"tokens":["`+strings.Join(tokens, `","`)+`"]}`, mine...)
	if more := reads() - before; more > n/4 {
		t.Errorf("%d reads for %d tokens", more, len(tokens))
	}
	for i, r := range done.Results {
		want := map[int]string{0: wire.CodeNotFound, 1: wire.CodeNotFound}[i]
		if r.Code != want {
			t.Errorf("token %d: %+v, want %q", i, r, want)
		}
	}
}
