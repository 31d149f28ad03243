package api

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestEveryMemberOfASaveIsStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := wire.ID(delaytask.NewID())
	saved := s.Save(`{"id":` + id.String() + `,"tag":"order.close","app":"shop","body":{"n":1.50, "x":"<é>"},
		"delay":"1h30m",
		"key":"k","ttr":60000,"max_attempts":7,"priority":-5,"headers":{"a":"b"},
		"max_lateness":"10s","late_policy":"fail"}`)
	got := s.Task(saved.ID)
	want := wire.Task{
		ID: id, Tag: "order.close", Key: "k", App: "shop", Status: "pending", MaxAttempts: 7, Priority: -5,
		DelayMS: 5_400_000, TTRMS: 60_000, MaxLateMS: 10_000, LatePolicy: "fail", Headers: map[string]string{"a": "b"},
		Body:     wire.BodyOf([]byte(`{"n":1.50,"x":"<é>"}`)), // what the database sets follows
		Expected: got.Expected, Due: got.Due, Created: got.Created, Updated: got.Updated,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if stored := s.stored(saved.ID); stored != `{"n":1.50, "x":"<é>"}` {
		t.Errorf("%s is stored: a body is to be stored as it was sent", stored)
	}
	if wait := got.Expected.Std().Sub(got.Created.Std()); wait < 89*time.Minute || wait > 91*time.Minute {
		t.Errorf("due after %v", wait)
	}
}

func TestAKeyThatIsTakenIsAnsweredWithItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.Save(`{"tag":"t","key":"k","app":"shop","body":1,"delay":"1h"}`)
	second := ok[wire.Saved](s, http.StatusOK, "POST", "/v1/tasks", `{"tag":"t","key":"k","app":"shop","body":2}`)
	if !second.Duplicate || second.ID != first.ID || string(second.Body.Body) != "1" || second.DelayMS != 3_600_000 {
		t.Errorf("got %+v, want %+v", second, first)
	}
	s.Save(`{"tag":"t","key":"k"}`)
	s.Save(`{"tag":"T","key":"k","app":"shop"}`)
	s.Save(`{"tag":"t","key":"K","app":"shop"}`)
	for range 2 { // the repetition of a request also distinguishes the applications
		if once := s.once(201, "1", `{"tag":"t","app":"x","key":"k"}`); once.Duplicate || once.App != "x" ||
			once.Key != "k" {
			t.Errorf("under an idempotency key: %+v", once)
		}
	}
	s.Want(404, wire.CodeNotFound, "DELETE", "/v1/tags/t/keys/k?app=Shop", "")
	s.Want(200, "", "DELETE", "/v1/tags/t/keys/k?app=shop", "")
	s.Want(409, wire.CodeConflict, "POST", "/v1/tasks", `{"tag":"t","body":3,"id":"`+first.ID.String()+`"}`)
}

func TestASaveReschedulesTheTaskOfItsKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const replace = `{"tag":"t","key":"k","body":2,"delay":"2h","on_conflict":"replace_time_and_body","max_wait":"90m"}`
	first := s.Save(`{"tag":"t","key":"k","body":1,"delay":"1h","on_conflict":"replace_time"}`)
	for range 2 { // the repetition is answered as the first time
		got := s.once(200, "a", replace)
		if got.ID != first.ID || !got.Rescheduled || got.Duplicate || string(got.Body.Body) != "2" ||
			got.Version != 1 || got.DelayMS > 5_400_000 || got.DelayMS < 5_300_000 {
			t.Errorf("got %+v", got)
		}
	}
	kept := ok[wire.Saved](s, 200, "POST", "/v1/tasks",
		`{"tag":"t","key":"k","delay":"3h","on_conflict":"only_earlier"}`)
	if kept.ID != first.ID || kept.Rescheduled || !kept.Duplicate {
		t.Errorf("a mode that keeps the task: %+v", kept)
	}
	s.Want(200, "", "POST", "/v1/tasks", `{"tag":"t","key":"k","on_conflict":"only_earlier"}`)
	popped := s.Pop("t", "")
	busy := s.Want(409, wire.CodeNotPending, "POST", "/v1/tasks", replace)
	if !strings.Contains(busy.Text, `"task_id":"`+first.ID.String()+`"`) {
		t.Errorf("the task is executing: %s", busy.Text)
	}
	batch := ok[wire.BatchSaved](s, 200, "POST", batchPath, "["+replace+`,{"tag":"t"}]`)
	if r := batch.Results[0]; r.ID != first.ID || r.Code != wire.CodeNotPending || batch.Results[1].ID == 0 ||
		batch.Chunks[0].Outcome != wire.ChunkStored || len(batch.Chunks[0].Errors) != 0 {
		t.Errorf("in a batch: %+v", batch)
	}
	s.end(popped, "finish", "")
	if got := s.once(201, "b", replace); got.ID == first.ID || got.Rescheduled {
		t.Errorf("after its end: %+v", got)
	}
}

func TestATimeMeansTheSameMomentInEveryZone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := func(at, want string) {
		t.Helper()
		if got := s.Save(`{"tag":"t","at":` + at + `}`).Expected.String(); got != want {
			t.Errorf("%s is stored as %s, want %s", at, got, want)
		}
		path := "/v1/tasks/" + s.Save(`{"tag":"t","delay":"1h"}`).ID.String()
		s.Want(200, "", "PATCH", path, `{"at":`+at+`}`)
		if got := ok[wire.Task](s, http.StatusOK, "GET", path, ""); got.Expected.String() != want {
			t.Errorf("moved to %s, it is expected at %s", at, got.Expected)
		}
		s.Want(200, "", "GET", "/v1/tasks?due_before="+url.QueryEscape(strings.Trim(at, `"`)), "")
	}
	f(`"2037-01-31T08:30:00.1239+09:30"`, "2037-01-30T23:00:00.123Z") // cut to milliseconds where it is shown
	f(`"2037-03-29T02:30:00+01:00"`, "2037-03-29T01:30:00.000Z")      // an hour that Berlin's clocks skip
	f(`"2037-10-25T02:30:00+02:00"`, "2037-10-25T00:30:00.000Z")      // one that they show twice
	f(`"2037-10-25T02:30:00+01:00"`, "2037-10-25T01:30:00.000Z")
	f(`2116744200`, "2037-01-28T08:30:00.000Z") // seconds since 1970; the length tells the unit
	f(`"2116744200000"`, "2037-01-28T08:30:00.000Z")
}

func TestWhatIsWrongIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := func(method, target, body, want string) {
		t.Helper()
		if got := s.Call(method, target, body); got.Detail != want {
			t.Errorf("%s %s %s: %q, want %q", method, target, body, got.Detail, want)
		}
	}
	f("POST", "/v1/tasks", `{"tag":"t","priority":1.5}`,
		"the request's body does not fit: /priority must be a whole number")
	f("POST", "/v1/tasks", `{"tag":"t","priority":99999999999999999999}`,
		"the request's body does not fit: /priority is out of range")
	f("POST", "/v1/tasks", `{"tag":"t","key":1}`, "the request's body does not fit: /key must not be a number")
	f("POST", "/v1/tasks", `{"tag":"?"}`, `invalid tag: want 1-128 bytes of A-Z a-z 0-9 . _ - : /: got "?"`)
	f("POST", "/v1/tags/t/pop?max=x", "", "query.max: invalid integer")
	f("POST", "/v1/tags/t/pop?mx=1", "", "query.mx: unknown query parameter")
	f("GET", "/v1/tasks/1", "", "get task 1: task not found")
}

func TestABodyComesBackByteForByte(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	longest := `"` + strings.Repeat("x", testBodyLimit-2) + `"`
	for _, body := range []string{`null`, `""`, `0`, `-0`, `1e400`, `[ 1 ,2]`, `"\u0000\ud83d\ude00"`,
		`{"tag":{"tag":[]}}`, longest,
		strings.Repeat("[", 400) + strings.Repeat("]", 400)} {
		saved := s.Save(`{"tag":"t","delay":"1h","body":` + body + `}`)
		if got := s.stored(saved.ID); got != body {
			t.Errorf("%.60s is stored as %.60s", body, got)
		}
	}
	saved := s.Save(`{"tag":"t","delay":"1h"}`)
	if got := s.stored(saved.ID); got != "" || saved.Body.Body != nil || saved.BodyText != nil {
		t.Errorf("no body is stored as %q", got)
	}
	s.Want(http.StatusRequestEntityTooLarge, wire.CodeBodyTooLarge, "POST", "/v1/tasks",
		`{"tag":"t","body":"`+strings.Repeat("x", testBodyLimit)+`"}`)
	s.Want(http.StatusRequestEntityTooLarge, wire.CodeRequestTooLarge, "POST", "/v1/tasks",
		`{"tag":"t","body":"`+strings.Repeat("x", 20<<20)+`"}`)
	s.Save(`{"tag":"t"}`)
}
