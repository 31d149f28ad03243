package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// bad is an answer, and the requests that must get it: each a method, a target, and a body that may be missing.
type bad struct {
	status   int
	code     string
	requests []string
}

// around makes requests that differ in one part.
func around(before, after string, differ ...string) (requests []string) {
	for _, d := range differ {
		requests = append(requests, before+d+after)
	}
	return requests
}

// saves are tasks with a mistake in one member, bodies whole bodies of a save.
func saves(members ...string) []string { return around(`POST /v1/tasks {"tag":"t",`, `}`, members...) }
func bodies(all ...string) []string    { return around("POST /v1/tasks ", "", all...) }

var (
	longBody = `"body":"` + strings.Repeat("x", testBodyLimit-1) + `"`
	deepBody = `"body":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
)

// badSaves are small: they are the seeds of [FuzzSave], too. Package wire tests what else is no id, no time and no
// duration.
func badSaves() []bad {
	return []bad{
		{400, wire.CodeInvalidTag, around(`POST /v1/tasks {"tag":`, `}`,
			`""`, `null`, `"`+strings.Repeat("x", 129)+`"`, `"a\u0000"`, `"a\r"`, `"a\n"`, `"a\t"`, `"a\u007f"`,
			`"\ufffd"`, `"a "`, `" a"`,
			`"'; DROP TABLE delay_task_message"`, `"%"`, `"a\\b"`, `"😀"`, `"\u202etag"`, `"é"`, `"e\u0301"`)},
		{400, wire.CodeInvalidTag, bodies(`{"body":1}`, `{}`, `null`)},
		{400, wire.CodeInvalidJSON, bodies("{\"tag\":\"\xff\xfe\"}", `{"tag":"\ud800"}`,
			"{\"tag\":\"t\",\"body\":\"\x00\"}", "{\"tag\":\"t\",\"body\":\"\xc3\x28\"}", `[]`, `123`, `"x"`, `true`,
			`{"tag":"t"}{"tag":"t"}`, `{"tag":"t"} x`, `{"tag":"t"},`,
			`{`, `{"tag":"t"`, ` `, "\ufeff"+`{"tag":"t"}`, ``)},
		{400, wire.CodeInvalidJSON, saves(
			`"body":{a:1}`, `"body":`, `"body":'x'`, `"body":NaN`, `"body":{"a":1,"a":2}`,
			`"dealy":"1h"`, `"delay":"1h","delay":"2h"`, `"Delay":"1h"`, `"tag":"u"`, `"":1`,
			`"delay":"1h","d\u0065lay":"1h"`, `"delay":null`, `"delay":1e309`, `"at":null`,
			`"at":"2037-03-29T02:30:00"`, `"at":0`, `"id":0`, `"id":null`, `"id":1.0`,
			`"id":9007199254740993.0`, `"ttr":-1`, `"ttr":null`, `"max_attempts":9223372036854775808`,
			`"max_attempts":1.5`, `"max_attempts":"3"`, `"priority":1e1`,
			`"no_attempt_limit":1`,
			`"headers":{"a":1}`, `"headers":[]`)},
		{400, wire.CodeInvalidDelay, append(saves(`"delay":-1`, `"delay":"-1h"`, `"key":"k","delay":"-1ns"`),
			"POST "+batchPath+` [{"tag":"t"},{"tag":"t","delay":-1}]`,
			`PATCH /v1/tags/t/keys/k {"delay":"-5m"}`,
			`POST /v1/tasks/1/release {"token":"1.1","delay":-1}`)},
		{400, wire.CodeDelayTooLong, saves(`"delay":"2562047h47m16.854775807s"`, `"at":"9999-12-31T23:59:59Z"`)},
		{400, wire.CodeInvalidTime, saves(`"at":"0001-01-01T00:00:00Z"`, `"at":"1969-12-31T23:59:59Z"`,
			`"at":"1970-01-01T00:00:00Z"`)},
		{400, wire.CodeInvalidOption, saves(
			`"delay":"1h","at":"2037-03-29T02:30:00Z"`, `"delay":0,"at":"2037-03-29T02:30:00Z"`,
			`"max_attempts":3,"no_attempt_limit":true`,
			`"max_lateness":0,"late_policy":"run"`, `"max_lateness":"1s","late_policy":"Run"`, `"late_policy":"skip"`,
			`"max_lateness":"2562047h"`,
			`"key":"k","on_conflict":"Replace_time"`, `"on_conflict":"replace_time"`, `"key":"k","max_wait":"1h"`,
			`"key":"k","on_conflict":"keep_existing","max_wait":1`,
			`"key":"k","on_conflict":"only_later","max_wait":"2562047h"`)},
		{400, wire.CodeInvalidKey, saves(`"key":"s3:k"`, `"key":"`+strings.Repeat("k", 60<<10)+`"`)},
		{400, wire.CodeInvalidID, saves(`"id":1`)},
		{400, wire.CodeInvalidTTR, saves(`"ttr":"3650d"`, `"ttr":"24h1ms"`)},
		{400, wire.CodeInvalidMaxAttempts, saves(`"max_attempts":-1`, `"max_attempts":2147483648`)},
		{400, wire.CodeInvalidPriority, saves(`"priority":101`, `"priority":-101`)},
		{400, wire.CodeInvalidParameter, saves(`"app":"x y"`, `"app":"\r\n"`, `"app":"`+strings.Repeat("x", 129)+`"`)},
		{400, wire.CodeInvalidHeaders, saves(`"headers":{"a":"`+strings.Repeat("x", 16<<10)+`"}`,
			`"headers":{"delaytask-app":"x"}`,
			`"headers":{"DelayTask-Other":"x"}`)},
	}
}

// badSizes are too large, too deep, or too many.
func badSizes() []bad {
	var keys strings.Builder
	for i := range 1_000_000 {
		keys.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	repeated := func(text, sep string) string { return strings.TrimSuffix(strings.Repeat(text+sep, mostBatch+1), sep) }
	return []bad{
		{413, wire.CodeBodyTooLarge, append(saves(longBody), "POST "+batchPath+` [{"tag":"t",`+longBody+`}]`)},
		{413, wire.CodeRequestTooLarge, saves(`"body":"`+strings.Repeat("x", 20<<20)+`"`, keys.String()+`"x":0`)},
		{413, wire.CodeRequestTooLarge, around("POST "+batchPath+" ", "", strings.Repeat(" ", mostBatchBytes+1))},
		{400, wire.CodeInvalidJSON, append(saves(deepBody, `"`+strings.Repeat("x", 60<<10)+`":1`),
			bodies(strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 10_000))...)},
		{400, wire.CodeInvalidJSON, around("POST "+batchPath+" ", "", "[{"+keys.String()+`"tag":"t"}]`)},
		{400, wire.CodeBatchTooLarge, []string{
			"POST " + batchPath + " [" + repeated(`{"tag":"t"}`, ",") + "]",
			`POST /v1/tasks/finish {"tokens":[` + repeated(`"1.1"`, ",") + "]}",
		}},
	}
}

// badCalls are about other routes than a save's.
func badCalls() (rows []bad) {
	for _, id := range []string{"abc", "1e3", "%D9%A3", "+1", "0", "12345678901234567890", "%201", "%00"} {
		rows = append(rows, bad{400, wire.CodeInvalidID, []string{
			"GET /v1/tasks/" + id, "DELETE /v1/tasks/" + id, "GET /v1/receivers/" + id,
			"POST /v1/tasks/" + id + `/finish {"token":"1.1"}`,
		}})
	}
	pop := func(queries ...string) []string { return around("POST /v1/tags/t/pop?", "", queries...) }
	list := func(queries ...string) []string { return around("GET /v1/tasks?", "", queries...) }
	return append(rows,
		bad{404, wire.CodeNoSuchRoute, []string{"POST /v1/tags/../../etc/pop", "POST /v1/tags//pop",
			"POST /v1/tags/a/b/pop", "GET /v1", "GET /",
			"GET /v1/tasks/", "GET /v2/tasks"}},
		bad{405, wire.CodeMethodNotAllowed, around("", " /v1/tasks", "PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT",
			"PROPFIND", "get")},
		bad{405, wire.CodeMethodNotAllowed, []string{"HEAD /v1/tasks/1", "DELETE /healthz", "POST /docs"}},
		bad{404, wire.CodeNotFound, []string{"GET /v1/tasks/1", "DELETE /v1/tasks/1", "DELETE /v1/tags/t/keys/none",
			"POST /v1/tasks/1/retry",
			"GET /v1/tasks/1/explain", `POST /v1/tasks/1/finish {"token":"1.1"}`,
			`POST /v1/tasks/1/fail {"token":"1.1","error":"x"}`}},
		bad{400, wire.CodeInvalidTag, append(around("POST /v1/", "", "tags/a%3Fc%23d/pop", "tags/%00/pop",
			"tags/%ff%fe/pause", "tags/%20/pause",
			"tags/%20/resume", "pop", "pop?tag=a&tag=",
			"pop?tag=a&tag=%20"), "GET /v1/tasks?tag=%20", "GET /v1/tags/%20/lateness")},
		bad{400, wire.CodeInvalidToken, around("POST /v1/tasks/1/finish ", "", `{"token":"2.1"}`, `{"token":"1"}`,
			`{"token":"1.01"}`, `{}`)},
		bad{400, wire.CodeInvalidJSON, []string{`POST /v1/tasks/1/finish {"token":1.1}`, `POST /v1/tasks/finish {}`,
			`POST /v1/tags/t/pop {"max":5}`,
			`POST /v1/tasks/1/touch {"token":"1.1","ttr":-1}`}},
		bad{400, wire.CodeInvalidTTR, around("POST /v1/tasks/1/touch ", "", `{"token":"1.1"}`,
			`{"token":"1.1","ttr":0}`)},
		bad{400, wire.CodeInvalidTTR, pop("ttr=-1", "ttr=25h", "ttr=60")},
		bad{400, wire.CodeInvalidOption, pop("wait=30", "wait=-1", "wait=-1s", "wait=soon", "wait=1.5", "max=0",
			"max=-1")},
		bad{400, wire.CodeInvalidOption, around("GET /v1/tasks/1?wait=", "", "30", "-1", "soon")},
		bad{400, wire.CodeInvalidParameter, pop("max=x", "max=1.0", "max=99999999999999999999", "max=1&max=2", "n=1",
			"max=1;wait=2", "max=%zz")},
		bad{400, wire.CodeInvalidOption, append(list("limit=-1", "status=done", "status=Pending", "tag=t&app=mall"),
			"GET /v1/tags/t/lateness?window=-1")},
		bad{400, wire.CodeInvalidParameter, append(list("limit=many", "bodies=maybe", "tags=t"),
			"POST /v1/receivers {}")},
		bad{400, wire.CodeInvalidTime, list("due_before=yesterday")},
		bad{400, wire.CodeInvalidTime, list("due_before=0001-01-01T00:00:00Z")},
		bad{400, wire.CodeInvalidOption, around("PATCH /v1/tasks/1 ", "", `{}`,
			`{"delay":1,"at":"2037-01-01T00:00:00Z"}`)},
		bad{400, wire.CodeInvalidJSON, around("PATCH /v1/tasks/1 ", "", ``, `{"delay":null}`, `{"priority":1}`)},
		bad{400, wire.CodeInvalidParameter, []string{"GET /v1/tags/t/keys/k?app=%20"}},
		bad{400, wire.CodeInvalidKey, []string{"GET /v1/tags/t/keys/delaytask-app:shop%7Corder-1"}},
		bad{400, wire.CodeInvalidCursor, list("cursor=x", "cursor=%00", "cursor=AAAAAAAAAAEAAAAAAAAAAA",
			"cursor="+strings.Repeat("A", 4096))},
		bad{400, wire.CodeInvalidID, []string{"GET " + batchPath}},
		bad{400, wire.CodeInvalidTag, around("POST "+batchPath+" ", "", `[{"tag":"t"},{"tag":""}]`,
			`[{"tag":"t"},null]`)},
		bad{400, wire.CodeInvalidJSON, around("POST "+batchPath+" ", "", `[{"tag":"t"},[]]`, `{"tag":"t"}`,
			`[{"tag":"t"}`, `null`)},
	)
}

// TestBadInputGetsItsAnswerAndNothingIsStored covers the bad inputs that concern HTTP.
func TestBadInputGetsItsAnswerAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := func(status int, code, request string, header ...string) {
		t.Helper()
		method, rest, _ := strings.Cut(request, " ")
		target, body, _ := strings.Cut(rest, " ")
		got := s.Want(status, code, method, target, body, header...)
		if len(got.Text) > 1500 {
			t.Errorf("%.160s: the answer has %d bytes: %.200s", request, len(got.Text), got.Text)
		}
		for _, word := range []string{"wire.", "json:", "jsontext", "strconv", "Go ", "int64", "runtime", "huma",
			"reflect"} {
			if strings.Contains(got.Text, word) {
				t.Errorf("%.160s: the answer speaks of %q: %s", request, word, got.Text)
			}
		}
		if got.Status == http.StatusMethodNotAllowed && got.Header.Get("Allow") == "" {
			t.Errorf("%.160s: 405 without Allow", request)
		}
	}
	for _, b := range slices.Concat(badSaves(), badSizes(), badCalls()) {
		for _, request := range b.requests {
			f(b.status, b.code, request)
		}
	}
	const task, batch = `POST /v1/tasks {"tag":"t"}`, "POST " + batchPath + " "
	for _, media := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", mediaNDJSON, "application/json; charset=utf-16",
		"application/json;;",
	} {
		f(415, wire.CodeUnsupportedMediaType, task, "Content-Type", media)
	}
	for _, packed := range []string{"gzip", "br", "identity, gzip"} {
		f(415, wire.CodeUnsupportedMediaType, task, "Content-Encoding", packed)
	}
	f(400, wire.CodeInvalidParameter, task, "Idempotency-Key", strings.Repeat("k", 256))
	f(400, wire.CodeInvalidHeader, task, "Idempotency-Key", "a", "Idempotency-Key", "b")
	f(400, wire.CodeInvalidHeader, batch+`[{"tag":"t"}]`, "Idempotency-Key", "k")
	f(400, wire.CodeBatchTooLarge, batch+strings.Repeat(`{"tag":"t"}`+"\n", mostBatch+1), "Content-Type", mediaNDJSON)
	headers := `{"tag":"t","headers":{"0":""`
	for n := range 999 {
		headers += fmt.Sprintf(`,"%x":""`, n+1)
	}
	f(400, wire.CodeBatchTooLarge, batch+strings.Repeat(headers+"}}\n", mostBatchHeaders/1000+1),
		"Content-Type", mediaNDJSON)
	for _, line := range []string{`{"tag":"t"`, `{"tag":"t"} {"tag":"t"}`, `[{"tag":"t"}]`} {
		f(400, wire.CodeInvalidJSON, batch+"{\"tag\":\"t\"}\n"+line, "Content-Type", mediaNDJSON)
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks were stored by requests that were refused", n)
	}
	for _, media := range []string{"application/JSON", "Application/Json; Charset=UTF-8",
		`application/json ;charset="utf-8"`} {
		f(201, "", task, "Content-Type", media)
	}
}
