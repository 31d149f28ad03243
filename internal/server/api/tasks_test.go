package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// test/api tests the life of a task by the client of a service. The tests here cover what other clients send and read.

// lease sends a verb with the lease token of a popped task, and further members of the body.
func TestACancelWithAnEmptyVersionIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := "/v1/tasks/" + s.Save(`{"tag":"a","delay":"1h"}`).ID.String()
	for _, query := range []string{"?version=", "?version", "?only_pending=true&version="} {
		s.Want(400, wire.CodeInvalidParameter, "DELETE", path+query, "")
	}
	s.Want(200, "", "DELETE", path+"?version=0&only_pending=", "")
}

func TestNamesOfDotsStandInPaths(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for tag, key := range map[string]string{".": "..", "..": ".~", "...": "."} {
		id := s.Save(`{"tag":"` + tag + `","key":"` + key + `","delay":"1h"}`).ID
		at := "/v1/tags/" + wire.Segment(tag)
		if found := ok[wire.Task](s, 200, "GET", at+"/keys/"+wire.Segment(key), ""); found.ID != id {
			t.Errorf("the task of %s is %+v", at, found)
		}
		s.Want(204, "", "POST", at+"/pause", "")
		s.Want(200, "", "PUT", "/v1/schedules/"+wire.Segment(tag), `{"lines":["@daily"],"tag":"`+tag+`"}`)
		if got := ok[wire.Schedule](s, 200, "GET", "/v1/schedules/"+wire.Segment(tag), ""); got.Name != tag {
			t.Errorf("the schedule %s is %+v", tag, got)
		}
	}
	s.Want(204, "", "POST", "/v1/tags/%2E%2E/resume", "") // of a client that knows no other way
	for _, tag := range ok[wire.TagList](s, 200, "GET", "/v1/tags", "").Tags {
		if tag.Paused != (tag.Tag != "..") {
			t.Errorf("got %+v", tag)
		}
	}
}

func (s *site) lease(p wire.Popped, verb, members string) servertest.Answer {
	s.TB.Helper()
	return s.Call("POST", "/v1/tasks/"+p.ID.String()+"/"+verb, `{"token":"`+p.Token+`"`+members+`}`)
}

// end is lease for a call that must succeed.
func (s *site) end(p wire.Popped, verb, members string) {
	s.TB.Helper()
	if got := s.lease(p, verb, members); got.Status != http.StatusNoContent || got.Text != "" {
		s.TB.Fatalf("%s %.100s: %d %s, want 204", verb, members, got.Status, got.Text)
	}
}

// refused is lease for a call that must fail.
func (s *site) refused(status int, code string, p wire.Popped, verb, members string) {
	s.TB.Helper()
	if got := s.lease(p, verb, members); got.Status != status || got.Code != code {
		s.TB.Errorf("%s %s: %d %s, want %d %s", verb, members, got.Status, got.Text, status, code)
	}
}

func TestAnswersNameWhatWasMet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"a/b","key":"k/ö","delay":"1h","body":1}`)
	byID, byKey := "/v1/tasks/"+saved.ID.String(), "/v1/tags/a%2Fb/keys/k%2F%C3%B6"
	met := func(want delaytask.Status, method, path, body string) {
		t.Helper()
		if got := ok[wire.Met](s, http.StatusOK, method, path, body); got.ID != saved.ID || got.Met != want {
			t.Errorf("%s %s: %+v, want %s", method, path, got, want)
		}
	}
	met("pending", "PATCH", byKey, `{"body":null,"delay":10800000}`)
	got := ok[wire.Task](s, http.StatusOK, "GET", byKey, "")
	if got.ID != saved.ID || got.Key != "k/ö" || string(got.Body.Body) != "null" || got.DelayMS != 10_800_000 {
		t.Errorf("got %+v", got)
	}
	for _, path := range []string{byID, byKey} {
		e := ok[wire.Explanation](s, http.StatusOK, "GET", path+"/explain", "")
		if e.Reason != "not_due" || e.Text == "" || e.Task.ID != saved.ID {
			t.Errorf("got %+v", e)
		}
	}
	s.Want(400, wire.CodeInvalidTime, "PATCH", byID, `{"at":"1969-01-01T00:00:00Z"}`)
	s.Want(400, wire.CodeDelayTooLong, "PATCH", byID, `{"delay":"106751d"}`)
	s.Want(413, wire.CodeBodyTooLarge, "PATCH", byID, `{`+longBody+`}`)
	s.Want(409, wire.CodeNotFailed, "POST", byID+"/retry", "")

	met("pending", "PATCH", byID, `{"delay":0}`)
	popped := s.Pop("a%2Fb", "")
	s.Want(409, wire.CodeNotPending, "PATCH", byID, `{"delay":1}`)
	s.Want(409, wire.CodeNotPending, "PATCH", byID, `{"body":1}`)
	s.Want(409, wire.CodeNotPending, "DELETE", byID+"?only_pending=true", "")
	s.end(popped, "fail", `,"error":"no such order","permanent":true`)
	if failed := s.Task(saved.ID); failed.Status != "failed" || len(failed.FailedAttempts) != 1 ||
		!strings.Contains(failed.Error, "no such order") {
		t.Errorf("got %+v", failed)
	}
	second := s.Save(`{"tag":"a/b","key":"k/ö","delay":"1h"}`)
	s.Want(409, wire.CodeDuplicate, "POST", byID+"/retry", "")
	s.Want(200, "", "DELETE", "/v1/tasks/"+second.ID.String(), "")
	met("failed", "POST", byID+"/retry", "")
	popped = s.Pop("a%2Fb", "")
	met("executing", "DELETE", byID, "")
	for verb, members := range map[string]string{"finish": "", "release": "", "fail": `,"error":"x"`,
		"touch": `,"ttr":"1m"`} {
		s.refused(409, wire.CodeLeaseLost, popped, verb, members)
	}
	s.Want(409, wire.CodeFinished, "DELETE", byID, "")
	s.Want(409, wire.CodeFinished, "PATCH", byID, `{"delay":1}`)
	s.Want(404, wire.CodeNotFound, "DELETE", byKey, "")
}

func TestAWakeNamesTags(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Want(204, "", "POST", "/v1/wake", `{"tags":["a/b","c"]}`)
	s.Want(400, wire.CodeInvalidTag, "POST", "/v1/wake", `{"tags":["a b"]}`)
	for _, wrong := range []string{`{}`, `{"tags":[]}`, `{"tags":"a"}`, `["a"]`, `{"tags":["a"],"id":1}`} {
		if got := s.Call("POST", "/v1/wake", wrong); got.Status/100 != 4 {
			t.Errorf("%s is answered with %d", wrong, got.Status)
		}
	}
}

func TestATagsPauseAndItsNumbersAreShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	none := ok[wire.TagLateness](s, http.StatusOK, "GET", "/v1/tags/a%2Fb/lateness", "")
	if none.Lateness != nil || none.WindowMS != 3_600_000 || none.Tag != "a/b" {
		t.Errorf("got %+v", none)
	}
	for _, warned := range []bool{true, false} { // paused already
		a := s.Call("POST", "/v1/tags/a%2Fb/pause", "")
		if says := a.Header.Get("Warning"); a.Status != 204 || strings.Contains(says, "misspelt") != warned {
			t.Errorf("%d, warning %q, want %v", a.Status, says, warned)
		}
	}
	saved := s.Save(`{"tag":"a/b","app":"shop"}`)
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/pop", "")
	e := ok[wire.Explanation](s, http.StatusOK, "GET", "/v1/tasks/"+saved.ID.String()+"/explain", "")
	// The missing receiver is reported before the pause.
	if e.Reason == "" || !strings.Contains(e.Text, "shop") {
		t.Errorf("got %+v", e)
	}
	if tags := ok[wire.TagList](s, http.StatusOK, "GET", "/v1/tags", "").Tags; len(tags) != 1 || tags[0].Tag != "a/b" ||
		!tags[0].Paused {
		t.Errorf("got %+v", tags)
	}
	s.Want(204, "", "POST", "/v1/tags/a%2Fb/resume", "")
	s.end(s.Pop("a%2Fb", ""), "finish", "")
	s.Save(`{"tag":"a/b","delay":"1h"}`)
	late := ok[wire.TagLateness](s, http.StatusOK, "GET", "/v1/tags/a%2Fb/lateness?window=365d", "")
	if late.Lateness == nil || late.Lateness.Samples != 1 || late.WindowMS != 7*24*3_600_000 {
		t.Errorf("got %+v", late)
	}
	stats := ok[wire.Stats](s, http.StatusOK, "GET", "/v1/stats", "")
	if len(stats.Tags) != 1 || stats.Tags[0].Counts["completed"] != 1 || stats.Tags[0].Counts["pending"] != 1 {
		t.Errorf("got %+v", stats)
	}
	servertest.Eventually(t, "a forecast has the time to count the task", func() bool {
		due := ok[wire.Forecast](s, http.StatusOK, "GET", "/v1/forecast?span=24h&tag=a%2Fb", "")
		one := wire.DueTasks{Tasks: 1, Precision: "exact"}
		return len(due.Tags) == 1 && len(due.Tags[0].Due) == 1 && due.Total.Sum == one
	})
	for _, span := range []string{"2h", "0", "soon"} {
		p := s.Want(400, wire.CodeInvalidOption, "GET", "/v1/forecast?span="+span, "")
		if !strings.Contains(p.Detail, "want 1h, 24h or 30d") {
			t.Errorf("span %s: %s", span, p.Detail)
		}
	}
	nodes := ok[wire.NodeList](s, http.StatusOK, "GET", "/v1/nodes", "")
	if len(nodes.Nodes) != 1 || nodes.Nodes[0].State != "alive" || nodes.Nodes[0].PID == 0 {
		t.Errorf("got %+v", nodes)
	}
}

func TestGetWaitsForTheEndOfATask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"t","delay":"1h"}`)
	path := "/v1/tasks/" + saved.ID.String()
	if got := ok[wire.Task](s, http.StatusOK, "GET", path+"?wait=50ms", ""); got.Status != "pending" {
		t.Errorf("when the wait is over: %+v", got)
	}
	answer := make(chan wire.Task, 1)
	go func() { answer <- ok[wire.Task](s, http.StatusOK, "GET", path+"?wait=1h", "") }() // clamped
	ok[wire.Met](s, http.StatusOK, "DELETE", path, "")
	if got := <-answer; got.Status != "cancelled" || got.ID != saved.ID {
		t.Errorf("a cancelled task is answered with %+v", got)
	}
}

func TestAPopHandsOutWhatIsDue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	popped := make(chan wire.PopReply, 1)
	go func() {
		popped <- ok[wire.PopReply](s, http.StatusOK, "POST", "/v1/pop?tag=u&tag=a%2Fb&wait=1h&max=1000000", "")
	}() // clamped
	s.AwaitServed("a/b")
	saved := s.Save(`{"tag":"a/b","key":"k","app":"shop","priority":3,"headers":{"a":"b"},
		"body":{"n":1},"delay":"50ms"}`)
	got := (<-popped).Tasks[0]
	if got.ID != saved.ID || got.Tag != "a/b" || got.Key != "k" || got.Attempt != 1 || got.Priority != 3 ||
		len(got.Headers) != 1 || got.Headers["a"] != "b" || got.App != "shop" || string(got.Body.Body) != `{"n":1}` ||
		got.Expected != saved.Expected || got.Token == "" {
		t.Errorf("popped %+v of %+v", got, saved)
	}
	s.Want(204, "", "POST", "/v1/tags/t/pop", "")
	s.Want(204, "", "POST", "/v1/tags/t/pop?wait=0", "{}") // as some clients send with every POST
	s.Want(204, "", "POST", "/v1/tags/t/pop?wait=1ms&ttr=0&max=1000000000", "")
}

func TestALeaseIsMovedAndEndedByItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","max_attempts":2}`)
	popped := s.Pop("t", "&ttr=2m")
	due := func(want time.Duration) {
		t.Helper()
		if left := time.Until(s.Task(popped.ID).Due.Std()); left > want || left < want-30*time.Second {
			t.Errorf("due in %v, want %v", left, want)
		}
	}
	due(2 * time.Minute)
	for ttr, want := range map[string]time.Duration{`"10m"`: 10 * time.Minute, `60000`: time.Minute,
		`"3650d"`: 24 * time.Hour} {
		s.end(popped, "touch", `,"ttr":`+ttr)
		due(want)
	}
	s.refused(400, wire.CodeInvalidOption, popped, "fail", "")
	s.refused(400, wire.CodeInvalidOption, popped, "fail", `,"error":"x","permanent":true,"retry_after":"1s"`)
	s.refused(400, wire.CodeInvalidJSON, popped, "fail", `,"error":"x","retry_after":null`)
	s.end(popped, "fail", `,"error":"`+strings.Repeat("é", 30_000)+`","retry_after":0`)
	popped = s.Pop("t", "")
	if popped.Attempt != 2 {
		t.Errorf("popped %+v", popped)
	}
	s.end(popped, "release", `,"delay":"1h"`)
	due(time.Hour)
	p := s.Want(400, wire.CodeInvalidToken, "POST", "/v1/tasks/finish", `{"tokens":["1.1","x"]}`)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.tokens[1]" {
		t.Errorf("got %+v", p)
	}
	none := ok[wire.FinishBatchReply](s, http.StatusOK, "POST", "/v1/tasks/finish", `{"tokens":[]}`)
	if none.Results == nil || len(none.Results) != 0 {
		t.Errorf("nothing is answered with %+v", none)
	}
}

func TestALongDelayDoesNotWrap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for verb, members := range map[string]string{"release": `,"delay":"106751d"`,
		"fail": `,"error":"x","retry_after":"106751d"`} {
		s.Save(`{"tag":"t"}`)
		popped := s.Pop("t", "")
		got := s.lease(popped, verb, members)
		if task := s.Task(popped.ID); got.Status != 400 &&
			(got.Status != 204 || time.Until(task.Due.Std()) < 24*time.Hour) {
			t.Errorf("%s: %d %s, due %v", verb, got.Status, got.Text, task.Due)
		}
	}
}
