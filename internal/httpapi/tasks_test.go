package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestATaskIsShownByIDAndByKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"a/b","key":"k/ö","delay":"1h","body":{"n":1}}`)
	byKey := ok[wire.Task](s, http.StatusOK, "GET", "/v1/tags/a%2Fb/keys/k%2F%C3%B6", "")
	if byKey.ID != saved.ID || byKey.Key != "k/ö" || string(byKey.Body.Body) != `{"n":1}` {
		t.Errorf("got %+v", byKey)
	}
	s.Want(404, wire.CodeNotFound, "GET", "/v1/tags/a/keys/k", "")
}

func TestAPendingTaskIsChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"t","key":"k","delay":"1h","body":1}`)
	path := "/v1/tasks/" + saved.ID.String()
	f := func(target, change, wantBody string, wantDelay time.Duration) {
		t.Helper()
		met := ok[wire.Met](s, http.StatusOK, "PATCH", target, change)
		got := s.Task(saved.ID)
		if met.ID != saved.ID || met.Met != "pending" || string(got.Body.Body) != wantBody {
			t.Errorf("%s: met %+v, now %s", change, met, got.Body.Body)
		}
		if wait := time.Until(got.Expected.Std()); wait > wantDelay || wait < wantDelay-time.Minute {
			t.Errorf("%s: due in %v, want %v", change, wait, wantDelay)
		}
	}
	f(path, `{"delay":"2h"}`, "1", 2*time.Hour)
	f(path, `{"body":{"n":2}}`, `{"n":2}`, 2*time.Hour)
	f(path, `{"body":null,"delay":10800000}`, "null", 3*time.Hour)
	f("/v1/tags/t/keys/k", `{"body":4}`, "4", 3*time.Hour)
	f(path, `{"at":"`+time.Now().Add(4*time.Hour).UTC().Format(time.RFC3339)+`"}`, "4", 4*time.Hour)

	s.Want(400, wire.CodeInvalidOption, "PATCH", path, `{}`)
	s.Want(400, wire.CodeInvalidOption, "PATCH", path, `{"delay":1,"at":"2037-01-01T00:00:00Z"}`)
	s.Want(400, wire.CodeInvalidJSON, "PATCH", path, `{"delay":null}`)
	s.Want(400, wire.CodeInvalidJSON, "PATCH", path, `{"priority":1}`)
	s.Want(400, wire.CodeInvalidJSON, "PATCH", path, ``)
	s.Want(400, wire.CodeInvalidTime, "PATCH", path, `{"at":"1969-01-01T00:00:00Z"}`)
	s.Want(400, wire.CodeDelayTooLong, "PATCH", path, `{"delay":"106751d"}`)
	s.Want(413, wire.CodeBodyTooLarge, "PATCH", path, `{"body":"`+strings.Repeat("x", testBodyLimit)+`"}`)
	if got := s.Task(saved.ID); string(got.Body.Body) != "4" {
		t.Errorf("a change that was refused left the body %s", got.Body.Body)
	}
}

func TestATaskThatRunsIsNotChangedButCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","key":"k"}`)
	popped := s.Pop("t", "")
	path := "/v1/tasks/" + popped.ID.String()
	s.Want(409, wire.CodeNotPending, "PATCH", path, `{"delay":1}`)
	s.Want(409, wire.CodeNotPending, "PATCH", path, `{"body":1}`)
	s.Want(409, wire.CodeNotFailed, "POST", path+"/retry", "")
	if met := ok[wire.Met](s, http.StatusOK, "DELETE", path, ""); met.Met != "executing" {
		t.Errorf("met %+v", met)
	}
	s.lost(popped, "finish", "")
	s.Want(409, wire.CodeFinished, "DELETE", path, "")
	s.Want(409, wire.CodeFinished, "PATCH", path, `{"delay":1}`)
	s.Want(404, wire.CodeNotFound, "DELETE", "/v1/tags/t/keys/k", "")
	if got := s.Task(popped.ID); got.Status != "cancelled" {
		t.Errorf("it is %s", got.Status)
	}
}

func TestAFailedTaskRunsAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","key":"k"}`)
	popped := s.Pop("t", "")
	path := "/v1/tasks/" + popped.ID.String()
	s.end(popped, "fail", `,"error":"no such order","permanent":true`)
	if failed := s.Task(popped.ID); failed.Status != "failed" || len(failed.FailedAttempts) != 1 || !strings.Contains(failed.Error, "no such order") {
		t.Errorf("got %+v", failed)
	}
	second := s.Save(`{"tag":"t","key":"k","delay":"1h"}`)
	s.Want(409, wire.CodeDuplicate, "POST", path+"/retry", "")
	ok[wire.Met](s, http.StatusOK, "DELETE", "/v1/tasks/"+second.ID.String(), "")
	if met := ok[wire.Met](s, http.StatusOK, "POST", path+"/retry", ""); met.Met != "failed" {
		t.Errorf("met %+v", met)
	}
	if again := s.Pop("t", ""); again.ID != popped.ID || again.Attempt != 1 {
		t.Errorf("popped %+v", again)
	}
}

func TestATaskSaysWhyItHasNotRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"t","key":"k","delay":"1h"}`)
	for _, target := range []string{"/v1/tasks/" + saved.ID.String() + "/explain", "/v1/tags/t/keys/k/explain"} {
		e := ok[wire.Explanation](s, http.StatusOK, "GET", target, "")
		if e.Reason != "not_due" || e.Text == "" || e.Task.ID != saved.ID {
			t.Errorf("got %+v", e)
		}
	}
	forShop := s.Save(`{"tag":"u","app":"shop"}`)
	if e := ok[wire.Explanation](s, http.StatusOK, "GET", "/v1/tasks/"+forShop.ID.String()+"/explain", ""); e.Reason == "" || !strings.Contains(e.Text, "shop") {
		t.Errorf("got %+v", e)
	}
}
