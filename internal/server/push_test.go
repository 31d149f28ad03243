package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// call is one call that a receiver got.
type call struct {
	method, path, token, body string
}

// receiver answers each call with the next of the answers, and repeats the last one.
func receiver(t *testing.T, answers ...string) (url string, calls <-chan call) {
	t.Helper()
	got := make(chan call, 10)
	n := 0
	return servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- call{r.Method, r.URL.RequestURI(), r.Header.Get("X-Token"), string(body)}
		_, _ = io.WriteString(w, answers[min(n, len(answers)-1)])
		n++
	}), got
}

// called checks a receiver's next calls.
func called(t *testing.T, calls <-chan call, want ...call) {
	t.Helper()
	for _, w := range want {
		if got := servertest.Receive(t, calls, "the call"); got != w {
			t.Errorf("called with %+v, want %+v", got, w)
		}
	}
}

// TestJobsOfOldClientsAreSentUntilTheirPassruleMatches sends the jobs of the tag http, and of a receiver in the
// settings, which exists again after a restart, with its jobs.
func TestJobsOfOldClientsAreSentUntilTheirPassruleMatches(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		c := settings(db.DSN)
		c.Push.Allow, c.Backoff.Base, c.Backoff.Cap = []string{"127.0.0.1"}, time.Hour, time.Hour // the TTR counts
		before := serve(t, c)
		before.Want(200, "", "POST", "/o/add", `{"topic":"mail","id":"1","delay":300,"ttr":1000,"body":"{\"to\":1}"}`)
		before.stop()

		url, calls := receiver(t, `{"code":0}`, `{"code":1}`)
		c.Receivers = map[string]config.Receiver{"mail": {URL: url + "/mail", PassRule: `{"code":1}`}}
		r := serve(t, c)
		called(t, calls, call{"POST", "/mail", "", `{"to":1}`}, call{"POST", "/mail", "", `{"to":1}`})
		servertest.Eventually(t, "it is completed", func() bool {
			return len(servertest.Ask[wire.Page](&r.Client, 200, "GET", "/v1/tasks?tag=mail&status=completed",
				"").Tasks) == 1
		})

		send := func(route, format, url, request string) {
			t.Helper()
			a := r.Want(200, "", "POST", route, fmt.Sprintf(format, fmt.Sprintf(request, url)))
			if !strings.HasPrefix(a.Text, `{"success":true,`) {
				t.Errorf("answered %s", a.Text)
			}
		}
		url, calls = receiver(t, `{"code":0}`, `{"code":1,"more":"is allowed"}`)
		send("/o/add", `{"topic":"http","id":"1","delay":10,"ttr":1000,"body":%q}`, url,
			`{"url":"%s/hook","method":"post","headers":{"X-Token":"t"},"body":{"n":1},"passrule":{"code":1}}`)
		began := time.Now()
		called(t, calls, call{"POST", "/hook", "t", `{"n":1}`}, call{"POST", "/hook", "t", `{"n":1}`})
		// The clock's bounds are wide while a machine stalls.
		if wait := time.Since(began); wait < 500*time.Millisecond {
			t.Errorf("sent again after %v, want its TTR of 1 s", wait)
		}
		url, calls = receiver(t, `{}`)
		send("/o/add", `{"topic":"http","id":"2","ttr":60000,"body":%q}`, url,
			`{"url":"%s/hook","method":"get","body":{"a":"b c"}}`)
		called(t, calls, call{"GET", "/hook?a=b+c", "", ""})
		url, calls = receiver(t, `{"success":true}`)
		send("/compat/topics", `{"command":"add","topic":"http","id":"1","delay":0,"TTR":60,"body":%q}`, url,
			`{"url":"%s/","body":"pushed","passrule":{"success":true}}`)
		called(t, calls, call{"POST", "/", "", "pushed"})
	})
}

func TestARequestThatCannotBeSentIsRefused(t *testing.T) {
	r := serve(t, sqlite(t))
	for body, want := range map[string][2]string{
		`no JSON`:                             {wire.CodeInvalidBody, "invalid request"},
		`{"method":"post"}`:                   {wire.CodeInvalidAddress, "invalid URL"},
		`{"url":"file:///etc/passwd"}`:        {wire.CodeInvalidAddress, "invalid URL"},
		`{"url":"https://10.0.0.1/x"}`:        {wire.CodeBlockedAddress, "not allowed"},
		`{"url":"https://a.b/","passrule":1}`: {wire.CodeInvalidBody, "invalid request"},
	} {
		if strings.HasPrefix(body, "{") {
			r.Want(400, want[0], "POST", "/v1/tasks", `{"tag":"http","body":`+body+`}`)
		}
		for _, old := range []servertest.Answer{
			r.Want(200, "", "POST", "/o/add", fmt.Sprintf(`{"topic":"http","id":"1","body":%q}`, body)),
			r.Want(200, "", "POST", "/compat/topics", fmt.Sprintf(`{"command":"add","topic":"http","id":"1","body":%q}`,
				body)),
		} {
			if !strings.HasPrefix(old.Text, `{"success":false`) || !strings.Contains(old.Text, want[1]) {
				t.Errorf("%s: %s, want %q", body, old.Text, want[1])
			}
		}
	}
	if tasks := servertest.Ask[wire.Page](&r.Client, 200, "GET", "/v1/tasks", "").Tasks; len(tasks) != 0 {
		t.Errorf("stored %+v", tasks)
	}
}
