package httpapi

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/faultstore"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/seam"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestWithoutATokenNobodyIsLetIn(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	secret, stored, err := access.New("old", []string{"*"}, []access.Verb{access.All}, row.At(time.Now().Add(-time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.CreateToken(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	good := s.token("good", []string{"*"}, access.All)
	for _, given := range []string{
		"Bearer", "Bearer ", "Bearer dt_", "Bearer dt_" + strings.Repeat("x", 43), "Bearer " + secret, "Basic dXNlcjpwYXNz", good[1] + "x",
		strings.TrimPrefix(good[1], "Bearer "), "Bearer " + good[1],
	} {
		p := s.refuses(401, wire.CodeUnauthorized, "GET", "/v1/tags", "", "Authorization", given)
		if strings.Contains(p.Detail, "dt_") {
			t.Errorf("the answer holds the token: %+v", p)
		}
	}
	for _, route := range []string{"POST /v1/tasks", "POST /v1/tasks/batch", "GET /v1/tasks/1", "POST /v1/tags/t/pop", "GET /v1/nowhere", "GET /v1/", "PUT /v1/tasks"} {
		method, path, _ := strings.Cut(route, " ")
		if got := s.send(method, path, ""); got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", route, got.status, got.text)
		}
	}
	query := "?token=" + strings.TrimPrefix(good[1], "Bearer ") + "&access_token=" + strings.TrimPrefix(good[1], "Bearer ")
	s.refuses(401, wire.CodeUnauthorized, "GET", "/v1/tags"+query, "")
	ok[wire.TagList](s, http.StatusOK, "GET", "/v1/tags", "", good...)
	ok[wire.TagList](s, http.StatusOK, "GET", "/v1/tags", "", "Authorization", strings.Replace(good[1], "Bearer", "bearer", 1))
	for _, open := range []string{"/healthz", "/readyz", "/docs", "/openapi.json"} {
		if got := s.send("GET", open, ""); got.status != http.StatusOK {
			t.Errorf("%s: %d", open, got.status)
		}
	}
}

func TestTwoAuthorizationHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	good := s.token("good", []string{"*"}, access.All)
	r := newRequest(t, "GET", "/v1/tags", "")
	r.Header["Authorization"] = []string{good[1], good[1]}
	if got := s.serve(r); got.status != 400 || got.Code != wire.CodeInvalidHeader {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// TestATokenReachesItsTagsOnly asks on every route for a task of another tag.
func TestATokenReachesItsTagsOnly(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	all, mine := s.token("all", []string{"*"}, access.All), s.token("mine", []string{"mine", "my.*"}, access.All)
	theirs := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"theirs","key":"k","body":"secret"}`, all...)
	popped := ok[wire.PopReply](s, 200, "POST", "/v1/tags/theirs/pop?wait=20s", "", all...).Tasks[0]
	later := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"theirs","key":"l","delay":"1h"}`, all...)
	token := `{"token":"` + popped.Token + `"`
	theirWorker := ok[wire.Worker](s, 201, "POST", "/v1/workers", register, all...)
	const workers = "/v1/workers/"
	byID := "/v1/tasks/" + theirs.ID.String()
	for _, c := range [][3]string{
		{"GET", "/v1/tags/theirs/keys/k"}, {"PATCH", "/v1/tags/theirs/keys/l", `{"body":1}`}, {"DELETE", "/v1/tags/theirs/keys/l"},
		{"GET", "/v1/tags/theirs/keys/l/explain"}, {"GET", "/v1/tags/theirs/keys/none"}, {"DELETE", "/v1/tags/theirs/keys/none"},
		{"POST", "/v1/tags/theirs/pop"}, {"POST", "/v1/pop?tag=mine&tag=theirs"},
		{"POST", "/v1/tasks", `{"tag":"theirs"}`}, {"POST", batchPath, `[{"tag":"mine"},{"tag":"theirs"}]`},
		{"POST", "/v1/tags/theirs/pause"}, {"POST", "/v1/tags/theirs/resume"}, {"GET", "/v1/tags/theirs/lateness"},
		{"GET", "/v1/tasks"}, {"GET", "/v1/tasks?tag=theirs"}, {"GET", "/v1/tasks?key=k"},
	} {
		p := s.refuses(403, wire.CodeForbidden, c[0], c[1], c[2], mine...)
		if strings.Contains(p.Detail, "secret") {
			t.Errorf("%s %s: %+v", c[0], c[1], p)
		}
	}
	for _, c := range [][3]string{
		{"GET", byID}, {"PATCH", byID, `{"delay":1}`}, {"DELETE", byID}, {"POST", byID + "/retry"}, {"GET", byID + "/explain"},
		{"PATCH", byID, `{"body":1}`}, {"DELETE", byID + "?only_pending=true"},
		{"POST", byID + "/finish", token + `}`}, {"POST", byID + "/fail", token + `,"error":"x"}`}, {"POST", byID + "/release", token + `}`},
		{"POST", byID + "/touch", token + `,"ttr":"1m"}`},
		{"GET", workers + theirWorker.ID.String()}, {"POST", workers + theirWorker.ID.String() + "/heartbeat"}, {"DELETE", workers + theirWorker.ID.String()},
	} {
		foreign := s.send(c[0], c[1], c[2], mine...)
		unknown := strings.NewReplacer(theirs.ID.String(), "424242", workers+theirWorker.ID.String(), workers+"424242")
		missing := s.send(c[0], unknown.Replace(c[1]), unknown.Replace(c[2]), mine...)
		if foreign.status != 404 || unknown.Replace(foreign.text) != missing.text {
			t.Errorf("%s %s of another tag: %d %s, unknown: %d %s", c[0], c[1], foreign.status, foreign.text, missing.status, missing.text)
		}
	}
	mixed := ok[wire.FinishBatchReply](s, 200, "POST", "/v1/tasks/finish", fmt.Sprintf(`{"tokens":["%s","1.1"]}`, popped.Token), mine...)
	if mixed.Results[0].Code != wire.CodeNotFound ||
		strings.Replace(mixed.Results[0].Detail, theirs.ID.String(), "1", 1) != mixed.Results[1].Detail {
		t.Errorf("got %+v", mixed)
	}
	for id, status := range map[wire.ID]string{theirs.ID: "executing", later.ID: "pending"} {
		if got := ok[wire.Task](s, 200, "GET", "/v1/tasks/"+id.String(), "", all...); got.Status != status {
			t.Errorf("%v is %s, want %s", id, got.Status, status)
		}
	}
	if tags := ok[wire.TagList](s, 200, "GET", "/v1/tags", "", mine...); len(tags.Tags) != 0 {
		t.Errorf("it sees %+v", tags)
	}
	if stats := ok[wire.Stats](s, 200, "GET", "/v1/stats", "", mine...); len(stats.Tags) != 0 {
		t.Errorf("it sees %+v", stats)
	}
	s.awaitServed("theirs")
	for _, n := range ok[wire.NodeList](s, 200, "GET", "/v1/nodes", "", mine...).Nodes {
		if len(n.Tags) != 0 || len(n.Shares) != 0 {
			t.Errorf("it sees %+v", n)
		}
	}
	own := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"my.own"}`, mine...)
	token = ok[wire.PopReply](s, 200, "POST", "/v1/tags/my.own/pop?wait=20s", "", mine...).Tasks[0].Token
	s.done("POST", "/v1/tasks/"+own.ID.String()+"/finish", `{"token":"`+token+`"}`, mine...)
}

// TestARowWithoutATagIsForThoseOfAllTags: only plain SQL makes one, and somebody must be able to look at it and end it.
func TestARowWithoutATagIsForThoseOfAllTags(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	all, mine := s.token("all", []string{"*"}, access.All), s.token("mine", []string{"my.*"}, access.All)
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.dsn, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const insert = "INSERT INTO delay_task_message (id, tag, message_body, delay_time) VALUES (77, '', '1', 3600000)"
	if _, err := db.ExecContext(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	s.refuses(404, wire.CodeNotFound, "GET", "/v1/tasks/77", "", mine...)
	s.refuses(404, wire.CodeNotFound, "DELETE", "/v1/tasks/77", "", mine...)
	if stats := ok[wire.Stats](s, 200, "GET", "/v1/stats", "", mine...); len(stats.Tags) != 0 {
		t.Errorf("it sees %+v", stats)
	}
	ok[wire.Explanation](s, 200, "GET", "/v1/tasks/77/explain", "", all...)
	s.send("DELETE", "/v1/tasks/77", "", all...)
	if got := ok[wire.Task](s, 200, "GET", "/v1/tasks/77", "", all...); got.Status != "cancelled" {
		t.Errorf("got %+v", got)
	}
}

func TestMetricsNameTagsToWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		s := newSite(t, func(c *Config) {
			c.Tokens, c.OpenMetrics = access.NewTokens(c.Requests.(*store.Store)), open
			c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, "a tag") })
		})
		f := func(want int, header ...string) {
			t.Helper()
			if open {
				want = 200
			}
			if got := s.send("GET", "/metrics", "", header...); got.status != want {
				t.Errorf("%v: %d %s, want %d", header, got.status, got.text, want)
			}
		}
		reader, some := s.token("reader", []string{"*"}, access.Read, access.Work), s.token("some", []string{"some.*"}, access.Metrics)
		prometheus, operator := s.token("prometheus", []string{"*"}, access.Metrics), s.token("operator", []string{"*"}, access.Operate)
		f(401)
		f(401, "Authorization", "Bearer dt_"+strings.Repeat("x", 43))
		f(403, reader...)
		f(403, some...)
		f(200, prometheus...)
		f(200, operator...)
	}
}

// TestATokenDoesItsVerbsOnly asks for everything with each verb alone.
func TestATokenDoesItsVerbsOnly(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	all := s.token("all", []string{"*"}, access.All)
	calls := map[access.Verb][][3]string{
		access.Save:     {{"POST", "/v1/tasks", `{"tag":"t"}`}, {"POST", batchPath, `[{"tag":"t"}]`}},
		access.SaveHTTP: {{"POST", "/v1/tasks", `{"tag":"http"}`}, {"POST", batchPath, `[{"tag":"http"}]`}},
		access.Read:     {{"GET", "/v1/tasks"}, {"GET", "/v1/tasks/ID"}, {"GET", "/v1/tasks/ID/explain"}, {"GET", "/v1/tags"}, {"GET", "/v1/tags/t/lateness"}},
		access.Change:   {{"PATCH", "/v1/tasks/ID", `{"delay":"2h"}`}, {"POST", "/v1/tasks/ID/retry"}},
		access.Work:     {{"POST", "/v1/tags/t/pop"}, {"POST", "/v1/pop?tag=t"}, {"POST", "/v1/tasks/ID/finish", `{"token":"ID.1"}`}, {"POST", "/v1/tasks/finish", `{"tokens":["ID.1"]}`}},
		access.Operate:  {{"POST", "/v1/tags/u/pause"}, {"POST", "/v1/tags/u/resume"}, {"GET", "/v1/nodes"}, {"GET", "/v1/stats"}},
		access.Register: {{"GET", "/v1/workers"}, {"POST", "/v1/workers", register}},
	}
	tokens := map[access.Verb][]string{}
	for _, v := range access.Verbs {
		tokens[v] = s.token(string(v), []string{"*"}, v)
	}
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"t","delay":"1h"}`, all...).ID.String()
	for _, may := range access.Verbs {
		for verb, requests := range calls {
			for _, c := range requests {
				got := s.send(c[0], strings.ReplaceAll(c[1], "ID", id), strings.ReplaceAll(c[2], "ID", id), tokens[may]...)
				if (got.status == 403) != (verb != may) {
					t.Errorf("%s with %s: %s %s: %d %.200s", verb, may, c[0], c[1], got.status, got.text)
				}
			}
		}
	}
}

func TestChangingWhereACallGoesIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	change, both := s.token("change", []string{"*"}, access.Change), s.token("both", []string{"*"}, access.Change, access.SaveHTTP)
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"http","delay":"1h","body":{"url":"https://example.com/"}}`, both...).ID.String()
	s.refuses(403, wire.CodeForbidden, "PATCH", "/v1/tasks/"+id, `{"body":{"url":"https://example.org/"}}`, change...)
	s.refuses(403, wire.CodeForbidden, "PATCH", "/v1/tasks/"+id, `{"delay":1,"body":{"url":"https://example.org/"}}`, change...)
	ok[wire.Met](s, 200, "PATCH", "/v1/tasks/"+id, `{"delay":"2h"}`, change...)
	ok[wire.Met](s, 200, "PATCH", "/v1/tasks/"+id, `{"body":{"url":"https://example.org/"}}`, both...)
}

func TestWhoMayOnlySaveSeesNoOthersTask(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	all, save := s.token("all", []string{"*"}, access.All), s.token("save", []string{"*"}, access.Save)
	first := ok[wire.Saved](s, 201, "POST", "/v1/tasks", `{"tag":"t","key":"k","body":"secret","headers":{"a":"secret"}}`, all...)
	got := s.send("POST", "/v1/tasks", `{"tag":"t","key":"k"}`, save...)
	if got.status != 200 || strings.Contains(got.text, "secret") || !strings.Contains(got.text, first.ID.String()) {
		t.Errorf("got %d %s", got.status, got.text)
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

func (unreachable) Check(context.Context, string) (access.Caller, error) {
	return access.Caller{}, fmt.Errorf("%w: dial tcp db.internal:3306: refused", access.ErrUnavailable)
}

func TestTokensThatCannotBeCheckedLetNobodyIn(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Tokens = unreachable{} })
	p := s.refuses(503, wire.CodeUnavailable, "GET", "/v1/tags", "", "Authorization", "Bearer x")
	if strings.Contains(p.Detail, "db.internal") {
		t.Errorf("the answer names the database: %s", p.Detail)
	}
	s = newSite(t, func(c *Config) { c.Tokens = unreachable{open: true} })
	s.refuses(503, wire.CodeUnavailable, "GET", "/v1/tags", "")
}

func TestWhatATagDemandsIsAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) {
		c.Check = func(item delaytask.Item) error {
			if item.Tag == "picky" {
				return problemOf(400, wire.CodeInvalidAddress, "no such address")
			}
			return nil
		}
	})
	s.refuses(400, wire.CodeInvalidAddress, "POST", "/v1/tasks", `{"tag":"picky"}`)
	s.refuses(400, wire.CodeInvalidAddress, "POST", "/v1/tasks", `{"tag":"picky"}`, "Idempotency-Key", "k")
	p := s.refuses(400, wire.CodeInvalidAddress, "POST", batchPath, `[{"tag":"t"},{"tag":"picky"}]`)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body[1]" {
		t.Errorf("got %+v", p)
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks are stored", n)
	}
}

// TestABatchOfEndsReadsItsTagsTogether counts the reads, of which the engine makes a few.
func TestABatchOfEndsReadsItsTagsTogether(t *testing.T) {
	t.Parallel()
	var counted *faultstore.Store
	s := newSite(t, func(c *Config) {
		c.Tokens = access.NewTokens(c.Requests.(*store.Store))
		counted = faultstore.New(seam.Store(c.Scheduler))
		made, err := seam.NewScheduler(delaytask.Config{Logger: slog.New(slog.DiscardHandler)}, counted,
			func(cfg engine.Config) (*engine.Engine, error) { return engine.New(t.Context(), cfg) })
		if err != nil {
			t.Fatal(err)
		}
		c.Scheduler = made.(*delaytask.Scheduler)
		t.Cleanup(func() {
			if err := c.Scheduler.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		if err := c.Scheduler.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	all := s.token("all", []string{"*"}, access.Save, access.Work)
	mine := s.token("mine", []string{"mine"}, access.Work)
	const n = 200
	ok[wire.BatchSaved](s, 200, "POST", batchPath,
		"["+strings.Repeat(`{"tag":"mine"},`, n)+`{"tag":"theirs"}]`, all...)
	tokens := []string{"1.1", ok[wire.PopReply](s, 200, "POST", "/v1/tags/theirs/pop?wait=20s", "", all...).Tasks[0].Token}
	for len(tokens) < 2+n {
		for _, p := range ok[wire.PopReply](s, 200, "POST", "/v1/tags/mine/pop?wait=20s&max=1000&ttr=1h", "", mine...).Tasks {
			tokens = append(tokens, p.Token)
		}
	}
	reads := func() int { return counted.CallsOf("Get") + counted.CallsOf("States") + counted.CallsOf("List") }
	before := reads()
	done := ok[wire.FinishBatchReply](s, 200, "POST", "/v1/tasks/finish", `{"tokens":["`+strings.Join(tokens, `","`)+`"]}`, mine...)
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
