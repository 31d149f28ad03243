package compat

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// stored are the tokens that there are.
type stored []row.AccessToken

func (s stored) AccessTokens(context.Context) ([]row.AccessToken, row.Reading, error) {
	return s, row.Reading{Time: row.At(time.Now())}, nil
}

// caller is a caller with a token for one tag.
func caller(t *testing.T, tag string, verbs ...access.Verb) access.Caller {
	t.Helper()
	secret, token, err := access.New("somebody", []string{tag}, verbs, 0)
	servertest.OK(t, err)
	c, err := access.NewTokens(stored{token}).Check(t.Context(), secret)
	servertest.OK(t, err)
	return c
}

func TestCallerMayDoWhatHisTokenSays(t *testing.T) {
	q := onSQLite(t)
	post := func(body string) [3]string { return [3]string{http.MethodPost, "/compat/topics", body} }
	get := func(path string) [3]string { return [3]string{http.MethodGet, path} }
	ours := caller(t, "a", access.Save, access.Work, access.Change)
	theirs := caller(t, "b", access.Save, access.Work, access.Change)
	for _, step := range []struct {
		name    string
		caller  access.Caller
		do      [3]string
		allowed bool
	}{
		{"add to another topic", theirs, post(`{"command":"add","topic":"a","id":"1"}`), false},
		{"add", ours, post(`{"command":"add","topic":"a","id":"1"}`), true},
		{"add to http with save alone", caller(t, "http", access.Save),
			post(`{"command":"add","topic":"http","id":"h"}`), false},
		{"add to http", caller(t, "http", access.SaveHTTP), post(`{"command":"add","topic":"http","id":"h"}`), true},
		{"pop of another topic", theirs, post(`{"command":"pop","topic":"a"}`), false},
		{"get of another topic", theirs, get("/o/get?topic=a"), false},
		{"get", ours, get("/o/get?topic=a&wait=20000"), true},
		{"finish a job of another topic", theirs, post(`{"command":"finish","id":"1"}`), false},
		{"finish a job of another topic and name one's own", theirs, post(`{"command":"finish","id":"1","topic":"b"}`),
			false},
		{"finish without the verb", caller(t, "a", access.Change), post(`{"command":"finish","id":"1"}`), false},
		{"finish", ours, post(`{"command":"finish","id":"1"}`), true},
		{"add again", ours, post(`{"command":"add","topic":"a","id":"1"}`), true},
		{"delete a job of another topic", theirs, post(`{"command":"delete","id":"1"}`), false},
		{"delete without the verb", caller(t, "a", access.Work), post(`{"command":"delete","id":"1"}`), false},
		{"delete", ours, post(`{"command":"delete","id":"1"}`), true},
		{"complete a job of another topic", theirs, get("/o/complete?topic=a&id=1"), false},
		{"ask for nothing with no verb at all", access.Caller{}, post(`{"command":"finish","id":"none"}`), false},
	} {
		q.caller = step.caller
		a := q.Call(step.do[0], step.do[1], step.do[2])
		want := http.StatusForbidden
		foreign := strings.Contains(a.Text, errNoJob.Error()) && strings.Contains(step.name, "a job of another")
		if step.allowed || foreign {
			want = http.StatusOK // an id of another topic is like an unknown one
		}
		if a.Status != want || strings.Contains(a.Text, `"success":true`) != step.allowed {
			t.Errorf("%s: got %d %s", step.name, a.Status, a.Text)
		}
	}
}

// A web page can send any GET to a server on the same machine, and these GETs take and complete jobs.
func TestWebPageOfAnotherOriginIsRefused(t *testing.T) {
	q := onSQLite(t)
	q.ok(q.add(`{"topic":"t","id":"1","ttr":60000}`))
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		for path, method := range map[string]string{
			"/o/get?topic=t": http.MethodGet, "/o/complete?topic=t&id=1": http.MethodGet,
			"/o/add": http.MethodPost, "/compat/topics": http.MethodPost,
		} {
			a := q.Want(403, "", method, path, `{"command":"pop","topic":"t"}`, header...)
			if !strings.Contains(a.Text, `"success":false`) {
				t.Errorf("%v: %s answers %s", header, path, a.Text)
			}
		}
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"},
		{"Origin", q.URL}} {
		q.Want(200, "", http.MethodGet, "/o/complete?topic=t&id=2", "", header...)
	}
	// A typed address, or a link in a mail, whose site answers 302 with this one.
	navigation := []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document",
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"}
	for _, path := range []string{"/o/get?topic=t", "/o/complete?topic=t&id=1"} {
		q.Want(403, "", http.MethodGet, path, "", navigation...)
	}
	q.is(q.get("t", "&wait=20000"), "1", "")
}

// A browser names the page that sends a GET to a loopback name, and not to any other name over plain HTTP.
func TestGetsOfAServerWithOtherNamesAreOffUnlessNoPageCanSendThem(t *testing.T) {
	q := onSQLite(t, func(c *Config) { c.OtherNames, c.GetTopics = true, []string{"on", "on.*"} })
	const page, client = "Mozilla/5.0 (X11; Linux x86_64)", "Delaytask-Client"
	token := caller(t, "*", access.All)
	for _, step := range []struct {
		topic  string
		caller access.Caller
		header []string
		why    string // of the refusal
	}{
		{"off", access.Everyone(), nil, "server.get_topics"},
		{"off", token, []string{client, "1"}, "server.get_topics"},
		{"only", access.Everyone(), []string{client, "1"}, "server.get_topics"},
		{"on", access.Everyone(), nil, client},
		{"on", access.Everyone(), []string{client, ""}, client},
		{"on", access.Everyone(), []string{"User-Agent", page}, client},
		{"on", token, []string{"User-Agent", page}, client}, // a proxy has added the token
		{"on", access.Everyone(), []string{client, "1", "Sec-Fetch-Site", "cross-site"}, "another origin"},
		{"on", access.Everyone(), []string{client, "1"}, ""},
		{"on.too", token, nil, ""},
		{"on", token, []string{"User-Agent", page, client, "1"}, ""},
	} {
		q.caller = access.Everyone()
		q.ok(q.add(`{"topic":"` + step.topic + `","id":"1"}`))
		q.caller = step.caller
		want := http.StatusForbidden
		if step.why == "" {
			want = http.StatusOK
		}
		for _, path := range []string{"/o/get?wait=20000&topic=", "/o/complete?id=1&topic="} {
			a := q.Want(want, "", http.MethodGet, path+step.topic, "", step.header...)
			if strings.Contains(a.Text, `"success":true`) != (step.why == "") || !strings.Contains(a.Text, step.why) {
				t.Errorf("%+v: %s answers %s", step, path, a.Text)
			}
		}
	}
}

// A proxy on the same machine calls a loopback name whatever the page called, and the browser has named no page.
func TestBrowserThatDoesNotNameItsPageIsRefused(t *testing.T) {
	q := onSQLite(t)
	const path, page = "/o/get?topic=t", "Mozilla/5.0 (X11; Linux x86_64)"
	q.Want(403, "", http.MethodGet, path, "", "User-Agent", page)
	q.Want(200, "", http.MethodGet, path, "", "User-Agent", page, "Sec-Fetch-Site", "none")
	q.Want(200, "", http.MethodGet, path, "", "User-Agent", page, "Delaytask-Client", "1")
}
