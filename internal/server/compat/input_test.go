package compat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestWrongJobIsRefusedInASentence(t *testing.T) {
	q := onSQLite(t)
	// Each request is sent to both protocols: the fields are the same.
	for name, c := range map[string]struct{ fields, why string }{
		"no topic":                 {`"id":"1"`, "invalid tag"},
		"a topic with a newline":   {`"topic":"a\n","id":"1"`, "invalid tag"},
		"a topic that is too long": {`"topic":"` + strings.Repeat("a", 129) + `","id":"1"`, "invalid tag"},
		"a topic that is a list":   {`"topic":["a"],"id":"1"`, "topic is not a string"},
		"no id":                    {`"topic":"a"`, "id is missing"},
		"an id that is null":       {`"topic":"a","id":null`, "id is missing"},
		"an id that is no integer": {`"topic":"a","id":1.5`, "id is not a string"},
		"an id that is too long":   {`"topic":"a","id":"` + strings.Repeat("é", 256) + `"`, "longer than"},
		"an id of ours":            {`"topic":"a","id":"delaytask:1"`, "reserved"},
		"half a character":         {`"topic":"a","id":"1","body":"\ud83d"`, "UTF-8"},
		"bytes that are not UTF-8": {"\"topic\":\"a\",\"id\":\"1\",\"body\":\"\xff\xfe\"", "UTF-8"},
		"a body over the limit":    {`"topic":"a","id":"1","body":"` + strings.Repeat("x", 1<<20+1) + `"`, "too large"},
		"a delay with a unit":      {`"topic":"a","id":"1","delay":"1h"`, "delay is not a whole number"},
		"a delay with a fraction":  {`"topic":"a","id":"1","delay":1.5`, "delay is not a whole number"},
		"a delay that is true":     {`"topic":"a","id":"1","delay":true`, "delay is not a whole number"},
		"a delay of an object":     {`"topic":"a","id":"1","delay":{}`, "delay is not a whole number"},
		"a delay beyond 64 bits":   {`"topic":"a","id":"1","delay":9223372036854775808`, "delay is out of range"},
		"a delay of 64 bits":       {`"topic":"a","id":"1","delay":9223372036854775807`, "delay too long"},
		"a delay of 5,000 years":   {`"topic":"a","id":"1","delay":157680000000000`, "delay too long"},
		"a TTR below zero":         {`"topic":"a","id":"1","ttr":-1`, "invalid TTR"},
		"a TTR of ten years":       {`"topic":"a","id":"1","ttr":315360000000`, "invalid TTR"},
		"a TTR of 64 bits":         {`"topic":"a","id":"1","TTR":"9223372036854775807"`, "invalid TTR"},
		"digits of another script": {`"topic":"a","id":"1","delay":"٣"`, "delay is not a whole number"},
		"nesting that does not end": {`"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			"well-formed"},
		"nesting in the body itself": {`"body":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
			"well-formed"},
	} {
		for path, body := range map[string]string{
			"/o/add": "{" + c.fields + "}", "/compat/topics": `{"command":"add",` + c.fields + "}",
		} {
			want := http.StatusOK
			if name == "a body over the limit" {
				want = http.StatusRequestEntityTooLarge
			}
			a := q.Want(want, "", http.MethodPost, path, body)
			if !strings.HasPrefix(a.Text, `{"success":false,"error":"`) || !strings.Contains(a.Text, c.why) {
				t.Errorf("%s: %s answers %.300s, want %q", name, path, a.Text, c.why)
			}
		}
	}
	if page, err := q.scheduler.List(t.Context(), delaytask.Filter{}); err != nil || len(page.Tasks) != 0 {
		t.Errorf("stored %+v, %v, want nothing", page.Tasks, err)
	}
}

func TestWhatIsNoCommandIsRefused(t *testing.T) {
	q := onSQLite(t)
	for body, why := range map[string]string{
		``:                     "well-formed",
		`{}`:                   "command is",
		`null`:                 "command is",
		`123`:                  "not a JSON object",
		`{"command":"pop"} {}`: "well-formed",
		`{"command":"pop",}`:   "well-formed",
		`{'command':'pop'}`:    "well-formed",
		`{"command":"push"}`:   "want add, pop, finish or delete",
		`{"command":7}`:        `"7"`,
		`{"command":["pop"]}`:  "command is not a string",
		`{"command":"finish"}`: "id is missing",
		`{"command":"delete"}`: "id is missing",
		`{"command":"pop"}`:    "invalid tag",
		`{"command":"pop","topic":"a","wait":-1}`:                          "wait is negative",
		`{"command":"pop","topic":"a","wait":"soon"}`:                      "wait is not a whole number",
		`{"command":"pop","topic":"a","max":0}`:                            "max is less than 1",
		`{"command":"finish","id":"delaytask:x"}`:                          "goes on with something else",
		`{"command":"finish","id":"delaytask:1"}`:                          "no unfinished job",
		"\xff\xfe{\x00}\x00":                                               "well-formed",
		`{"` + strings.Repeat(`a":1,"`, 1_000_000) + `command":"nothing"}`: "command is",
		`{"command":"` + strings.Repeat("a", 1000) + `"}`:                  `"aaaaaaaaaaaaaaaaaaaa",`,
		"topic=a&id=1": "well-formed",
	} {
		q.refused(q.command(body), why)
	}
	for path, why := range map[string]string{
		"/o/get":                                     "invalid tag",
		"/o/get?topic=":                              "invalid tag",
		"/o/get?topic=%ff":                           "invalid tag",
		"/o/get?topic=%zz":                           "cannot be read",
		"/o/get?topic=a&topic=b":                     "topic is given twice",
		"/o/get?topic=a&wait=-1":                     "wait is negative",
		"/o/get?topic=a&wait=1s":                     "wait is not a whole number",
		"/o/get?topic=a&max=0":                       "max is less than 1",
		"/o/get?topic=a&max=":                        "max is not a whole number",
		"/o/complete?topic=a":                        "id is missing",
		"/o/complete?id=1":                           "invalid tag",
		"/o/complete?topic=a&id=%ff":                 "UTF-8",
		"/o/complete?topic=a&id=s3:1":                "reserved",
		"/o/complete?topic=a&id=delaytask-app:a%7C1": "reserved",
		"/o/complete?topic=a&id=1":                   "no unfinished job",
		"/o/complete?topic=a&id=1%00":                "no unfinished job",
		"/o/complete?topic=a/b%3Fc&id=1":             "invalid tag",
		"/o/complete?topic=..%2f..&id=etc":           "no unfinished job",
	} {
		q.refused(q.ask(http.MethodGet, path, ""), why)
	}
	q.refused(q.add(`{"topic":"a","id":"s3:1"}`), "reserved")
}

func TestLenientFieldsAreUnderstood(t *testing.T) {
	q := onSQLite(t)
	for n, c := range []struct {
		fields string
		delay  time.Duration
		ttr    time.Duration
		body   string
	}{
		{`"delay":"7","ttr":" 2000 ","body":"x"`, 7 * time.Millisecond, 2 * time.Second, "x"},
		{`"DELAY":7,"Ttr":2000,"Body":"x"`, 7 * time.Millisecond, 2 * time.Second, "x"},
		{`"delay":1,"delay":9,"body":"x","body":"y"`, 9 * time.Millisecond, 15 * time.Second, "y"},
		{`"delay":null,"ttr":null,"body":null`, 0, 15 * time.Second, ""},
		{`"ttr":0`, 0, 15 * time.Second, ""},
		{`"ttr":1`, 0, time.Second, ""},
		{`"delay":-5`, 0, 15 * time.Second, ""},
		{`"delay":-9223372036854775808`, 0, 15 * time.Second, ""},
		{`"body":{"a": [1,2]}`, 0, 15 * time.Second, `{"a": [1,2]}`},
		{`"body":12345678901234567890.10`, 0, 15 * time.Second, `12345678901234567890.10`},
		{`"body":"\"quoted\""`, 0, 15 * time.Second, `"quoted"`},
		{`"body":"\u0000\ud83d\udcee \u2028</script>"`, 0, 15 * time.Second, "\x00📮 \u2028</script>"},
	} {
		id := fmt.Sprint(n)
		q.ok(q.add(`{"topic":"t","id":` + id + `,` + c.fields + `}`))
		task := q.task("t", id)
		if task.Delay != c.delay || task.TTR != c.ttr || string(task.Body) != c.body {
			t.Errorf("%s: stored %v, %v, %q", c.fields, task.Delay, task.TTR, task.Body)
		}
		q.ok(q.complete("t", q.get("t", "&wait=20000").ID))
	}
	longest := strings.Repeat("é", 252)
	q.ok(q.command(`{"command":"add","topic":"t","id":"` + longest + `","body":"x"}`))
	q.is(q.command(`{"command":"pop","topic":"t","wait":20}`), longest, "x")
	q.refused(q.command(`{"command":"add","topic":"t","id":"é`+longest+`"}`), "longer than 252")
}

func TestBodyAtTheLimitIsTakenHoweverItIsWritten(t *testing.T) {
	q := onSQLite(t)
	for n, char := range []string{"x", `\u0001`, `\/`} {
		q.ok(q.add(fmt.Sprintf(`{"topic":"t","id":%d,"body":"%s"}`, n, strings.Repeat(char, 1<<20))))
		if a := q.ok(q.get("t", "&wait=20000")); len(a.Value) != 1<<20 {
			t.Errorf("%s: got %d bytes", char, len(a.Value))
		}
	}
	a := q.Want(413, "", http.MethodPost, "/o/add", strings.Repeat(" ", 6<<20+reqbody.Envelope+1))
	if !strings.Contains(a.Text, `"success":false`) {
		t.Errorf("got %s", a.Text)
	}
}

func TestAnyContentTypeIsTaken(t *testing.T) {
	q := onSQLite(t)
	for n, media := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "no type",
	} {
		a := q.Want(200, "", http.MethodPost, "/o/add", fmt.Sprintf(`{"topic":"t","id":"%d"}`, n), "Content-Type",
			media)
		if !strings.Contains(a.Text, `"success":true`) {
			t.Errorf("%q: got %s", media, a.Text)
		}
	}
	a := q.Want(200, "", http.MethodPost, "/o/add", "\x1f\x8b\x08 packed", "Content-Encoding", "gzip")
	if !strings.Contains(a.Text, "not well-formed JSON") {
		t.Errorf("packed: got %s", a.Text)
	}
}

func TestOtherMethodsAndPathsAreErrorsOfHTTP(t *testing.T) {
	q := onSQLite(t)
	q.ok(q.add(`{"topic":"t","id":"1"}`))
	for path, method := range map[string]string{
		"/o/add": http.MethodPost, "/compat/topics": http.MethodPost,
		"/o/get?topic=t": http.MethodGet, "/o/complete?topic=t&id=1": http.MethodGet,
	} {
		for _, other := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"} {
			if other != method {
				q.Want(405, "", other, path, "")
			}
		}
	}
	for _, path := range []string{"/", "/o", "/o/", "/o/Get?topic=t", "/o/get/", "/compat/topics/t", "/v1/tasks"} {
		if a := q.Want(404, "", http.MethodGet, path, ""); !strings.Contains(a.Text, `"success":false`) {
			t.Errorf("%s: %s", path, a.Text)
		}
	}
}

func TestRequestThatEndsTooEarlyStoresNothing(t *testing.T) {
	q := onSQLite(t)
	server := httptest.NewServer(q.handler)
	defer server.Close()
	const head, body = "POST /o/add HTTP/1.1\r\nHost: h\r\n", `{"topic":"t","id":"1"}`
	for name, request := range map[string]string{
		"a length that lies": head + "Content-Length: 99\r\n\r\n" + body,
		"chunks without end": head + "Transfer-Encoding: chunked\r\n\r\n16\r\n" + body + "\r\n",
		"an invalid chunk":   head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		if answer := servertest.Speak(t, server.URL, request, true); !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s: %s", name, answer)
		}
	}
	q.is(q.get("t", ""), "", "")
}
