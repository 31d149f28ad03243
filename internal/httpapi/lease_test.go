package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

// call is the path of a verb on a task, and its body with the token.
func call(p wire.Popped, verb, members string) (target, body string) {
	return "/v1/tasks/" + p.ID.String() + "/" + verb, `{"token":"` + p.Token + `"` + members + `}`
}

func TestATokenEndsItsLeaseOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"t"}`)
	popped := s.popOne("t", "")
	target, body := call(popped, "finish", "")
	s.done("POST", target, body)
	done := s.get(popped.ID)
	if done.Status != "completed" {
		t.Errorf("it is %s", done.Status)
	}
	for verb, members := range map[string]string{"finish": "", "release": "", "fail": `,"error":"x"`, "touch": `,"ttr":"1m"`} {
		target, body := call(popped, verb, members)
		s.refuses(409, wire.CodeLeaseLost, "POST", target, body)
	}
	if again := s.get(popped.ID); again.Version != done.Version || again.Status != done.Status {
		t.Errorf("a stale token changed %+v to %+v", done, again)
	}
}

func TestAReleasedTaskIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"t"}`)
	first := s.popOne("t", "")
	s.done2(call(first, "release", ""))
	second := s.popOne("t", "")
	if second.ID != first.ID || second.Attempt != 1 || second.Token == first.Token {
		t.Errorf("popped %+v after %+v", second, first)
	}
	target, body := call(first, "finish", "") // its lease is somebody else's now
	s.refuses(409, wire.CodeLeaseLost, "POST", target, body)
	s.done2(call(second, "release", `,"delay":"1h"`))
	if got := s.get(first.ID); got.Status != "pending" || got.Due.Std().Year() > 3000 || time.Until(got.Due.Std()) < 59*time.Minute {
		t.Errorf("released for an hour: %s, due %v", got.Status, got.Due)
	}
}

func TestALongDelayDoesNotWrap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, verb := range []string{"release", "fail"} {
		s.save(`{"tag":"t"}`)
		popped := s.popOne("t", "")
		members := `,"delay":"106751d"`
		if verb == "fail" {
			members = `,"error":"x","retry_after":"106751d"`
		}
		target, body := call(popped, verb, members)
		got := s.send("POST", target, body)
		if task := s.get(popped.ID); got.status != 400 && (got.status != 204 || time.Until(task.Due.Std()) < 24*time.Hour) {
			t.Errorf("%s: %d %s, due %v", verb, got.status, got.text, task.Due)
		}
	}
}

// done2 sends what call has made.
func (s *site) done2(target, body string) {
	s.t.Helper()
	s.done("POST", target, body)
}

func TestAFailureSpendsTheAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"t","max_attempts":2}`)
	first := s.popOne("t", "")
	target, _ := call(first, "fail", "")
	token := `{"token":"` + first.Token + `"`
	s.refuses(400, wire.CodeInvalidOption, "POST", target, token+`}`)
	s.refuses(400, wire.CodeInvalidOption, "POST", target, token+`,"error":"x","permanent":true,"retry_after":"1s"}`)
	s.refuses(400, wire.CodeInvalidJSON, "POST", target, token+`,"error":"x","retry_after":null}`)
	s.done("POST", target, token+`,"error":"`+strings.Repeat("é", 30_000)+`","retry_after":0}`)
	second := s.popOne("t", "")
	if second.Attempt != 2 {
		t.Errorf("popped %+v", second)
	}
	s.done2(call(second, "fail", `,"error":"again"`))
	if got := s.get(first.ID); got.Status != "failed" || len(got.FailedAttempts) != 2 || got.FailedAttempts[1].Error != "again" {
		t.Errorf("got %+v", got)
	}
}

func TestATouchMovesTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.save(`{"tag":"t"}`)
	popped := s.popOne("t", "&ttr=2m")
	f := func(ttr string, want time.Duration) {
		t.Helper()
		s.done2(call(popped, "touch", `,"ttr":`+ttr))
		if left := time.Until(s.get(popped.ID).Due.Std()); left > want || left < want-30*time.Second {
			t.Errorf("a touch of %s leaves %v, want %v", ttr, left, want)
		}
	}
	if left := time.Until(s.get(popped.ID).Due.Std()); left > 2*time.Minute || left < time.Minute {
		t.Errorf("the lease of 2 m ends in %v", left)
	}
	f(`"10m"`, 10*time.Minute)
	f(`60000`, time.Minute)
	f(`"3650d"`, 24*time.Hour)
	target, body := call(popped, "touch", `,"ttr":0`)
	s.refuses(400, wire.CodeInvalidTTR, "POST", target, body)
	s.done2(call(popped, "finish", ""))
}

func TestManyAreFinishedEachForItself(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var tokens []string
	for range 3 {
		s.save(`{"tag":"t"}`)
		tokens = append(tokens, s.popOne("t", "").Token)
	}
	s.done("POST", "/v1/tasks/"+strings.Split(tokens[1], ".")[0]+"/release", `{"token":"`+tokens[1]+`"}`)
	sent := []string{tokens[0], tokens[1], "1.1", tokens[2], tokens[0]}
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
	p := s.refuses(400, wire.CodeInvalidToken, "POST", "/v1/tasks/finish", `{"tokens":["1.1","x"]}`)
	if len(p.Errors) != 1 || p.Errors[0].Location != "body.tokens[1]" {
		t.Errorf("got %+v", p)
	}
}
