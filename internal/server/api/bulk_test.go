package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// changeMany makes a bulk change and waits until it has ended.
func (s *site) changeMany(body string) (run wire.BulkRun) {
	s.TB.Helper()
	begun := s.Want(202, "", "POST", bulkPath, body)
	servertest.Eventually(s.TB, "the bulk change ends", func() bool {
		run = ok[wire.BulkRun](s, 200, "GET", begun.Header.Get("Location"), "")
		return run.Outcome != "running"
	})
	return run
}

// blocking starts a run of the tag that goes on until it is stopped.
func (s *site) blocking(tag string) bulk.State {
	s.TB.Helper()
	about := bulk.About{Verb: "cancel", Filter: delaytask.Filter{Tag: tag}, AsOf: time.Now()}
	run, err := core.Of(s.scheduler).Bulks().Start(about, nil,
		func(ctx context.Context, progress func(int)) (int, error) {
			progress(500)
			<-ctx.Done()
			return 500, ctx.Err()
		})
	servertest.OK(s.TB, err)
	return run
}

func TestABulkChangeRunsToItsEndAndStaysWithinItsMoment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ids := map[string]wire.ID{}
	save := func(name, body string) { ids[name] = s.Save(body).ID }
	save("one", `{"tag":"a","delay":"1h"}`)
	save("two", `{"tag":"a","delay":"2h"}`)
	save("later", `{"tag":"a","delay":"3h"}`)
	save("other", `{"tag":"b","delay":"1h"}`)
	due := time.Now().Add(150 * time.Minute).UTC().Format(wire.Layout)
	filter := `"filter":{"tag":"a","due_before":"` + due + `"}`
	count := ok[wire.BulkCount](s, 200, "POST", bulkPath, `{"action":"cancel",`+filter+`,"dry_run":true}`)
	if count.Tasks != 2 || count.Capped {
		t.Fatalf("counted %+v", count)
	}
	servertest.Eventually(t, "the moment is over", func() bool {
		now, err := s.store.Now(t.Context())
		return err == nil && now.Time.Std().After(count.AsOf.Std())
	})
	save("new", `{"tag":"a","delay":"1h"}`)
	request := `{"action":"cancel",` + filter + `,"as_of":"` + count.AsOf.String() + `"}`
	run := s.changeMany(request)
	if run.Outcome != "done" || run.Done != 2 || run.Error != "" || run.Ended.IsZero() || run.AsOf != count.AsOf ||
		run.Action != "cancel" || run.Filter.Tag != "a" || run.Filter.DueBefore.String() != due {
		t.Errorf("got %+v", run)
	}
	if got := s.entries("action=bulk.cancel"); len(got) != 1 || got[0] != "bulk.cancel  a done 2" {
		t.Errorf("recorded %q", got)
	}
	if again := s.changeMany(request); again.Done != 0 || again.ID == run.ID {
		t.Errorf("sent again: %+v", again)
	}
	for name, status := range map[string]delaytask.Status{
		"one": "cancelled", "two": "cancelled", "later": "pending", "other": "pending", "new": "pending",
	} {
		if got := s.Task(ids[name]); got.Status != status {
			t.Errorf("%s is %s", name, got.Status)
		}
	}
	runs := ok[wire.BulkList](s, 200, "GET", bulkPath, "").Runs
	if len(runs) != 2 || runs[1].ID != run.ID {
		t.Errorf("got %+v", runs)
	}
	failed := s.Save(`{"tag":"c"}`).ID
	popped := s.Pop("c", "")
	s.Want(204, "", "POST", "/v1/tasks/"+failed.String()+"/fail",
		`{"token":"`+popped.Token+`","error":"no such order","permanent":true}`)
	future := `"as_of":"2999-01-01T00:00:00Z"}` // means now
	if got := s.changeMany(`{"action":"retry","filter":{"error":"such"},` + future); got.Done != 1 ||
		got.AsOf.Std().After(time.Now().Add(time.Hour)) {
		t.Errorf("retried %+v", got)
	}
	if got := s.Task(failed); got.Status == "failed" {
		t.Errorf("got %+v", got)
	}
	if got := s.changeMany(`{"action":"cancel","all":true}`); got.Done < 3 {
		t.Errorf("cancelled %+v", got)
	}
}

func TestABulkChangeThatIsNoneChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.Save(`{"tag":"t","delay":"1h"}`).ID
	filters := func(all ...string) []string { return around(`{"action":"cancel","filter":{`, `}}`, all...) }
	for _, b := range []bad{
		{400, wire.CodeInvalidOption, []string{
			`{"action":"cancel"}`, `{"action":"cancel","filter":{}}`, `{"action":"cancel","filter":null}`,
			`{"action":"cancel","filter":{},"dry_run":true}`, `{"action":"cancel","all":false}`,
			`{"action":"cancel","all":null}`,
			`{"action":"cancel","filter":{"tag":"t"},"all":true}`,
			`{"action":"delete","filter":{"tag":"t"}}`, `{"action":"Cancel","all":true}`, `{"all":true}`,
		}},
		{400, wire.CodeInvalidJSON, filters(`"tag":""`, `"tag":null`, `"tag":["t"]`, `"error":""`,
			`"key":null,"tag":"t"`, `"status":"pending"`, `"Tag":"t"`, `"due_to":"2030-01-01T00:00:00Z"`,
			`"due_before":null`, `"due_before":"soon"`, `"due_from":5`, `"late_by":null`, `"late_by":-1`,
			`"tag":"t","tag":"t"`)},
		{400, wire.CodeInvalidJSON, []string{``, `[]`, `{"action":"cancel","all":"true"}`,
			`{"action":"cancel","filter":{"tag":"t"},"as_of":null}`, `{"action":"cancel","all":true,"dryrun":true}`}},
		{400, wire.CodeInvalidOption, filters(`"key":"k"`, `"tag":"t","app":"a"`, `"late_by":0`, `"group":"g"`,
			`"error":"`+strings.Repeat("x", 1001)+`"`)},
		{400, wire.CodeInvalidTag, filters(`"tag":" "`)},
		{400, wire.CodeInvalidKey, filters(`"tag":"t","key":"delaytask-app:a|k"`)},
		{400, wire.CodeInvalidParameter, filters(`"tag":"t","key":"k","app":" "`)},
		{400, wire.CodeInvalidTime, filters(`"due_from":"0001-01-01T00:00:00Z"`,
			`"tag":"t","due_before":"0001-01-01T00:00:00Z"`)},
		{400, wire.CodeInvalidTime, []string{`{"action":"cancel","all":true,"as_of":"0001-01-01T00:00:00Z"}`}},
	} {
		for _, body := range b.requests {
			s.Want(b.status, b.code, "POST", bulkPath, body)
		}
	}
	s.Want(400, wire.CodeInvalidHeader, "POST", bulkPath, `{"action":"cancel","all":true}`, "Idempotency-Key", "k")
	for _, call := range []string{"GET " + bulkPath + "/none", "POST " + bulkPath + "/none/stop"} {
		method, path, _ := strings.Cut(call, " ")
		if p := s.Want(404, wire.CodeBulkNotFound, method, path, ""); !strings.Contains(p.Detail, "another process") {
			t.Errorf("%s: %s", call, p.Detail)
		}
	}
	if runs := ok[wire.BulkList](s, 200, "GET", bulkPath, "").Runs; len(runs) != 0 {
		t.Errorf("%d were begun", len(runs))
	}
	if got := s.Task(id); got.Status != "pending" {
		t.Errorf("the task is %s", got.Status)
	}
}

func TestABulkChangeIsStoppedByThoseWhoMayChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, change := s.token("all", "*", access.All), s.token("change", "a", access.Change)
	read, other := s.token("read", "a", access.Read), s.token("other", "b", access.Read, access.Change)
	work := s.token("work", "*", access.Work)
	one, every := s.blocking("a"), s.blocking("")
	for _, c := range []struct {
		name             string
		header           []string
		see, stop, sees0 int
		runs             int
	}{
		{"work", work, 403, 403, 403, -1}, {"other", other, 404, 404, 404, 0}, {"read", read, 200, 403, 404, 1},
		{"change", change, 200, 204, 404, 1}, {"all", all, 200, 204, 200, 2},
	} {
		path := bulkPath + "/" + one.ID
		if got := s.Call("GET", path, "", c.header...); got.Status != c.see {
			t.Errorf("%s sees: %d", c.name, got.Status)
		}
		if got := s.Call("GET", bulkPath+"/"+every.ID, "", c.header...); got.Status != c.sees0 {
			t.Errorf("%s sees the change of all tags: %d", c.name, got.Status)
		}
		if c.runs >= 0 {
			if got := ok[wire.BulkList](s, 200, "GET", bulkPath, "", c.header...); len(got.Runs) != c.runs {
				t.Errorf("%s sees %d runs", c.name, len(got.Runs))
			}
		}
		if got := s.Call("POST", path+"/stop", "", c.header...); got.Status != c.stop {
			t.Errorf("%s stops: %d", c.name, got.Status)
		}
		if run, _ := core.Of(s.scheduler).Bulks().Get(one.ID); c.stop != 204 && run.Outcome != bulk.Running {
			t.Errorf("%s was refused and has stopped it", c.name)
		}
	}
	servertest.Eventually(t, "the run has stopped", func() bool {
		got := ok[wire.BulkRun](s, 200, "GET", bulkPath+"/"+one.ID, "", change...)
		return got.Outcome == "stopped" && got.Done == 500 && got.Error == ""
	})
	if run, _ := core.Of(s.scheduler).Bulks().Get(every.ID); run.Outcome != bulk.Running {
		t.Errorf("the other run is %s", run.Outcome)
	}
	log := ok[wire.AuditPage](s, 200, "GET", "/v1/audit?action=bulk.stop&who=change", "", all...)
	if len(log.Entries) != 1 || log.Entries[0].Target != one.ID {
		t.Errorf("the audit log has %+v", log.Entries)
	}
}

// Another process has begun the changes.
func TestABulkChangeOfAnotherProcessIsShownAndStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	servertest.Exec(t, s.dsn, "INSERT INTO delay_task_audit (create_time, who, action, tag, tasks, detail, seen_time)"+
		" VALUES ('2026-03-01 12:00:00.000000', 'bob', 'bulk.retry', 'a', 7, 'tag=a', '2026-03-01 12:00:09.000000'),"+
		" ('2026-03-01 11:00:00.000000', '', 'bulk.cancel', '', NULL, 'late_by=1s', NULL)")
	lost := ok[wire.BulkRun](s, 200, "GET", bulkPath+"/1", "")
	if lost.Outcome != "lost" || lost.Done != 7 || lost.Who != "bob" || lost.Filter.Tag != "a" || lost.Error == "" {
		t.Errorf("got %+v", lost)
	}
	s.Want(204, "", "POST", bulkPath+"/1/stop", "")
	if got := ok[wire.BulkRun](s, 200, "GET", bulkPath+"/1", ""); !got.Stopping {
		t.Errorf("asked to stop: %+v", got)
	}
	s.Want(409, wire.CodeBulkUntold, "POST", bulkPath+"/2/stop", "")
	list := ok[wire.BulkList](s, 200, "GET", bulkPath, "")
	if len(list.Runs) != 2 || list.Runs[1].Outcome != "unknown" || list.Runs[1].Detail == "" {
		t.Errorf("got %+v", list)
	}
}

func TestABulkChangeThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const request = `{"action":"retry","filter":{"tag":"t"}}`
	run, err := core.Of(s.scheduler).Bulks().Start(bulk.About{Verb: "retry", AsOf: time.Now()}, nil,
		func(context.Context, func(int)) (int, error) {
			return 7, errors.New("dial tcp db.internal:3306: refused")
		})
	servertest.OK(t, err)
	servertest.Eventually(t, "the run has failed", func() bool {
		got := s.Want(200, "", "GET", bulkPath+"/"+run.ID, "")
		if strings.Contains(got.Text, "db.internal") {
			t.Fatal(got.Text)
		}
		return strings.Contains(got.Text, `"outcome":"failed","error":"the database`)
	})
	for range 4 {
		s.blocking("t")
	}
	s.Want(429, wire.CodeTooManyBulkChanges, "POST", bulkPath, request)
	core.Of(s.scheduler).Bulks().End()
	core.Of(s.scheduler).Bulks().Wait(t.Context())
	s.Want(503, wire.CodeStopping, "POST", bulkPath, request)
	if got := ok[wire.BulkList](s, 200, "GET", bulkPath, "").Runs[0]; got.Outcome != "stopped" || got.Error == "" {
		t.Errorf("got %+v", got)
	}
}
