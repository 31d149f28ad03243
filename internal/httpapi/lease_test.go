package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// lease sends a verb with the token of a task that was handed out, and further members of the body.
func (s *site) lease(p wire.Popped, verb, members string) servertest.Answer {
	s.TB.Helper()
	return s.Call("POST", "/v1/tasks/"+p.ID.String()+"/"+verb, `{"token":"`+p.Token+`"`+members+`}`)
}

// end is lease for what must be done.
func (s *site) end(p wire.Popped, verb, members string) {
	s.TB.Helper()
	if got := s.lease(p, verb, members); got.Status != http.StatusNoContent || got.Text != "" {
		s.TB.Fatalf("%s %.100s: %d %s, want 204", verb, members, got.Status, got.Text)
	}
}

// lost is lease for a token whose lease is over.
func (s *site) lost(p wire.Popped, verb, members string) {
	s.TB.Helper()
	if got := s.lease(p, verb, members); got.Status != http.StatusConflict || got.Code != wire.CodeLeaseLost {
		s.TB.Errorf("%s: %d %s, want a lease that is lost", verb, got.Status, got.Text)
	}
}

func TestATokenEndsItsLeaseOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t"}`)
	popped := s.Pop("t", "")
	s.end(popped, "finish", "")
	done := s.Task(popped.ID)
	for verb, members := range map[string]string{"finish": "", "release": "", "fail": `,"error":"x"`, "touch": `,"ttr":"1m"`} {
		s.lost(popped, verb, members)
	}
	if again := s.Task(popped.ID); done.Status != "completed" || again.Version != done.Version || again.Status != done.Status {
		t.Errorf("a stale token changed %+v to %+v", done, again)
	}
}

func TestAReleasedTaskIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t"}`)
	first := s.Pop("t", "")
	s.end(first, "release", "")
	second := s.Pop("t", "")
	if second.ID != first.ID || second.Attempt != 1 || second.Token == first.Token {
		t.Errorf("popped %+v after %+v", second, first)
	}
	s.lost(first, "finish", "") // its lease is somebody else's now
	s.end(second, "release", `,"delay":"1h"`)
	if got := s.Task(first.ID); got.Status != "pending" || got.Due.Std().Year() > 3000 || time.Until(got.Due.Std()) < 59*time.Minute {
		t.Errorf("released for an hour: %s, due %v", got.Status, got.Due)
	}
}

func TestALongDelayDoesNotWrap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for verb, members := range map[string]string{"release": `,"delay":"106751d"`, "fail": `,"error":"x","retry_after":"106751d"`} {
		s.Save(`{"tag":"t"}`)
		popped := s.Pop("t", "")
		got := s.lease(popped, verb, members)
		if task := s.Task(popped.ID); got.Status != 400 && (got.Status != 204 || time.Until(task.Due.Std()) < 24*time.Hour) {
			t.Errorf("%s: %d %s, due %v", verb, got.Status, got.Text, task.Due)
		}
	}
}

func TestAFailureSpendsTheAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","max_attempts":2}`)
	first := s.Pop("t", "")
	for members, code := range map[string]string{
		"": wire.CodeInvalidOption, `,"error":"x","permanent":true,"retry_after":"1s"`: wire.CodeInvalidOption,
		`,"error":"x","retry_after":null`: wire.CodeInvalidJSON,
	} {
		if got := s.lease(first, "fail", members); got.Status != 400 || got.Code != code {
			t.Errorf("%s: %d %s, want 400 %s", members, got.Status, got.Text, code)
		}
	}
	s.end(first, "fail", `,"error":"`+strings.Repeat("é", 30_000)+`","retry_after":0`)
	second := s.Pop("t", "")
	s.end(second, "fail", `,"error":"again"`)
	got := s.Task(first.ID)
	if second.Attempt != 2 || got.Status != "failed" || len(got.FailedAttempts) != 2 || got.FailedAttempts[1].Error != "again" {
		t.Errorf("got %+v", got)
	}
}

func TestATouchMovesTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t"}`)
	popped := s.Pop("t", "&ttr=2m")
	f := func(ttr string, want time.Duration) {
		t.Helper()
		if ttr != "" {
			s.end(popped, "touch", `,"ttr":`+ttr)
		}
		if left := time.Until(s.Task(popped.ID).Due.Std()); left > want || left < want-30*time.Second {
			t.Errorf("a touch of %s leaves %v, want %v", ttr, left, want)
		}
	}
	f("", 2*time.Minute)
	f(`"10m"`, 10*time.Minute)
	f(`60000`, time.Minute)
	f(`"3650d"`, 24*time.Hour)
	s.end(popped, "finish", "")
}

func TestManyAreFinishedEachForItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var popped []wire.Popped
	for range 3 {
		s.Save(`{"tag":"t"}`)
		popped = append(popped, s.Pop("t", ""))
	}
	s.end(popped[1], "release", "")
	sent := []string{popped[0].Token, popped[1].Token, "1.1", popped[2].Token, popped[0].Token}
	got := ok[wire.FinishBatchReply](s, http.StatusOK, "POST", "/v1/tasks/finish", fmt.Sprintf(`{"tokens":["%s"]}`, strings.Join(sent, `","`)))
	for i, want := range []string{"", wire.CodeLeaseLost, wire.CodeNotFound, "", wire.CodeLeaseLost} {
		if r := got.Results[i]; r.Token != sent[i] || r.Code != want || (want == "") != (r.Detail == "") {
			t.Errorf("%d: %+v, want %q", i, r, want)
		}
	}
	none := ok[wire.FinishBatchReply](s, http.StatusOK, "POST", "/v1/tasks/finish", `{"tokens":[]}`)
	if none.Results == nil || len(none.Results) != 0 {
		t.Errorf("nothing is answered with %+v", none)
	}
	p := s.Want(400, wire.CodeInvalidToken, "POST", "/v1/tasks/finish", `{"tokens":["1.1","x"]}`)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.tokens[1]" {
		t.Errorf("got %+v", p)
	}
}
