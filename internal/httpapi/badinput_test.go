package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// bad is a request that must be refused, with the number of the kind of mistake that it makes.
type bad struct {
	n              int
	method, target string
	body           string
	status         int
	code           string
	header         []string
}

// badSave is a task with a mistake in one member.
func badSave(n int, members string, status int, code string) bad {
	return bad{n: n, method: "POST", target: "/v1/tasks", body: `{"tag":"t",` + members + `}`, status: status, code: code}
}

// badTag is a task with this tag, as JSON has it.
func badTag(n int, tag string) bad {
	return bad{n: n, method: "POST", target: "/v1/tasks", body: `{"tag":` + tag + `}`, status: 400, code: wire.CodeInvalidTag}
}

func badBody(n int, body string) bad {
	return bad{n: n, method: "POST", target: "/v1/tasks", body: body, status: 400, code: wire.CodeInvalidJSON}
}

func badCall(n int, method, target string, status int, code string, header ...string) bad {
	return bad{n: n, method: method, target: target, status: status, code: code, header: header}
}

func badTags() []bad {
	return []bad{
		badTag(1, `""`), badTag(1, `null`), {1, "POST", "/v1/tasks", `{"body":1}`, 400, wire.CodeInvalidTag, nil},
		badTag(2, `"`+strings.Repeat("x", 129)+`"`),
		badTag(3, `"a\u0000"`), badTag(3, `"a\r"`), badTag(3, `"a\n"`), badTag(3, `"a\t"`), badTag(3, `"a\u007f"`),
		badBody(4, "{\"tag\":\"\xff\xfe\"}"), badBody(4, `{"tag":"\ud800"}`), badTag(4, `"\ufffd"`),
		badTag(5, `"a "`), badTag(5, `" a"`),
		badTag(6, `"'; DROP TABLE delay_task_message"`), badTag(6, `"%"`), badTag(6, `"a\\b"`),
		badTag(7, `"😀"`), badTag(7, `"\u202etag"`), badTag(7, `"é"`), badTag(7, `"e\u0301"`),
		badCall(8, "POST", "/v1/tags/../../etc/pop", 404, wire.CodeNoSuchRoute),
		badCall(8, "POST", "/v1/tags//pop", 404, wire.CodeNoSuchRoute),
		badCall(8, "POST", "/v1/tags/a/b/pop", 404, wire.CodeNoSuchRoute),
		badCall(8, "POST", "/v1/tags/a%3Fc%23d/pop", 400, wire.CodeInvalidTag),
		badCall(8, "POST", "/v1/tags/%00/pop", 400, wire.CodeInvalidTag),
		badCall(8, "POST", "/v1/tags/%ff%fe/pause", 400, wire.CodeInvalidTag),
	}
}

func badBodies() []bad {
	huge := `"body":"` + strings.Repeat("x", testBodyLimit-1) + `"`
	return []bad{
		badBody(11, "{\"tag\":\"t\",\"body\":\"\x00\"}"), badBody(11, "{\"tag\":\"t\",\"body\":\"\xc3\x28\"}"),
		badSave(12, huge, 413, wire.CodeBodyTooLarge),
		badSave(13, `"body":"`+strings.Repeat("x", 20<<20)+`"`, 413, wire.CodeRequestTooLarge),
		badSave(14, `"body":{a:1}`, 400, wire.CodeInvalidJSON), badSave(14, `"body":`, 400, wire.CodeInvalidJSON),
		badSave(14, `"body":'x'`, 400, wire.CodeInvalidJSON), badSave(14, `"body":NaN`, 400, wire.CodeInvalidJSON),
	}
}

func badTimes() []bad {
	json, long, at := wire.CodeInvalidJSON, wire.CodeDelayTooLong, wire.CodeInvalidTime
	return []bad{
		badSave(16, `"delay":-1`, 400, json), badSave(16, `"delay":"-1ns"`, 400, json), badSave(16, `"delay":-9223372036854775808`, 400, json),
		badSave(17, `"delay":9223372036854775807`, 400, json), badSave(17, `"delay":"2562047h47m16.854775807s"`, 400, long),
		badSave(19, `"at":"9999-12-31T23:59:59Z"`, 400, long), badSave(19, `"at":"10000-01-01T00:00:00Z"`, 400, json),
		badSave(20, `"delay":1e309`, 400, json), badSave(20, `"delay":1e3`, 400, json), badSave(20, `"delay":"1e309"`, 400, json),
		badSave(20, `"delay":NaN`, 400, json), badSave(20, `"delay":"NaN"`, 400, json), badSave(20, `"delay":1.5`, 400, json),
		badSave(20, `"delay":null`, 400, json), badSave(20, `"delay":true`, 400, json), badSave(20, `"delay":""`, 400, json),
		badSave(20, `"delay":"1 h"`, 400, json), badSave(20, `"delay":{}`, 400, json), badSave(20, `"delay":["1h"]`, 400, json),
		badSave(21, `"at":"0001-01-01T00:00:00Z"`, 400, at), badSave(21, `"at":"0000-00-00T00:00:00Z"`, 400, json),
		badSave(21, `"at":""`, 400, json), badSave(21, `"at":null`, 400, json), badSave(21, `"at":0`, 400, json),
		badSave(21, `"at":-2116744200`, 400, json), badSave(21, `"at":21167442000`, 400, json), badSave(21, `"at":2.1e9`, 400, json),
		badSave(21, `"at":2116744200.0`, 400, json), badSave(21, `"at":2116744200000000000`, 400, json),
		badSave(22, `"at":"1969-12-31T23:59:59Z"`, 400, at), badSave(22, `"at":"1970-01-01T00:00:00Z"`, 400, at),
		badSave(23, `"at":"2037-03-29T02:30:00"`, 400, json), badSave(23, `"at":"2037-03-29T02:30:00 Europe/Berlin"`, 400, json),
		badSave(23, `"at":"2037-03-29T02:30:00+24:00"`, 400, json), badSave(23, `"at":"2037-03-29 02:30:00Z"`, 400, json),
		badSave(23, `"delay":"1h","at":"2037-03-29T02:30:00Z"`, 400, wire.CodeInvalidOption),
		badSave(23, `"delay":0,"at":"2037-03-29T02:30:00Z"`, 400, wire.CodeInvalidOption),
		badSave(24, `"at":"2037-03-29T02:30:00Z m=+0.1"`, 400, json),
		badSave(25, `"at":"2016-12-31T23:59:60Z"`, 400, json),
	}
}

func badOptions() []bad {
	json, option := wire.CodeInvalidJSON, wire.CodeInvalidOption
	return []bad{
		badSave(35, `"key":"`+strings.Repeat("k", 60<<10)+`"`, 400, wire.CodeInvalidKey), badSave(35, `"key":"s3:k"`, 400, wire.CodeInvalidKey),
		badSave(39, `"id":"-1"`, 400, json), badSave(39, `"id":0`, 400, json), badSave(39, `"id":"9223372036854775808"`, 400, json),
		badSave(39, `"id":1`, 400, wire.CodeInvalidID), badSave(39, `"id":null`, 400, json), badSave(39, `"id":1.0`, 400, json),
		badSave(39, `"id":1e18`, 400, json), badSave(39, `"id":"x"`, 400, json), badSave(39, `"id":""`, 400, json),
		badSave(42, `"ttr":-1`, 400, json), badSave(42, `"ttr":"-1s"`, 400, json), badSave(42, `"ttr":"3650d"`, 400, wire.CodeInvalidTTR),
		badSave(42, `"ttr":"24h1ms"`, 400, wire.CodeInvalidTTR), badSave(42, `"ttr":null`, 400, json),
		badSave(43, `"max_attempts":-1`, 400, wire.CodeInvalidMaxAttempts), badSave(43, `"max_attempts":2147483648`, 400, wire.CodeInvalidMaxAttempts),
		badSave(43, `"max_attempts":9223372036854775808`, 400, json), badSave(43, `"max_attempts":1.5`, 400, json),
		badSave(43, `"max_attempts":"3"`, 400, json), badSave(43, `"max_attempts":3,"no_attempt_limit":true`, 400, option),
		badSave(44, `"priority":101`, 400, wire.CodeInvalidPriority), badSave(44, `"priority":-101`, 400, wire.CodeInvalidPriority),
		badSave(44, `"priority":1e1`, 400, json), badSave(44, `"max_lateness":0,"late_policy":"run"`, 400, option),
		badSave(44, `"max_lateness":"1s","late_policy":"Run"`, 400, option), badSave(44, `"late_policy":"skip"`, 400, option),
		badSave(44, `"max_lateness":"2562047h"`, 400, option), badSave(44, `"no_attempt_limit":1`, 400, json),
		badSave(44, `"app":"x y"`, 400, wire.CodeInvalidParameter), badSave(44, `"app":"\r\n"`, 400, wire.CodeInvalidParameter),
		badSave(44, `"app":"`+strings.Repeat("x", 129)+`"`, 400, wire.CodeInvalidParameter),
		badSave(44, `"headers":{"a":1}`, 400, json), badSave(44, `"headers":[]`, 400, json),
		badSave(44, `"headers":{"a":"`+strings.Repeat("x", 16<<10)+`"}`, 400, wire.CodeInvalidHeaders),
		badSave(44, `"headers":{"delaytask-app":"x"}`, 400, wire.CodeInvalidHeaders),
		badSave(44, `"headers":{"DelayTask-Other":"x"}`, 400, wire.CodeInvalidHeaders),
	}
}

func badIDs() (rows []bad) {
	for _, id := range []string{"abc", "1e3", "%D9%A3", "1.0", "+1", "-1", "0", "12345678901234567890", "007", "%201", "1%20", "0x1", "1_000", "%00"} {
		rows = append(rows, badCall(58, "GET", "/v1/tasks/"+id, 400, wire.CodeInvalidID),
			badCall(58, "DELETE", "/v1/tasks/"+id, 400, wire.CodeInvalidID),
			badCall(58, "GET", "/v1/workers/"+id, 400, wire.CodeInvalidID),
			bad{58, "POST", "/v1/tasks/" + id + "/finish", `{"token":"1.1"}`, 400, wire.CodeInvalidID, nil})
	}
	return append(rows,
		badCall(53, "GET", "/v1/tasks/1", 404, wire.CodeNotFound), badCall(53, "DELETE", "/v1/tasks/1", 404, wire.CodeNotFound),
		badCall(53, "DELETE", "/v1/tags/t/keys/none", 404, wire.CodeNotFound),
		badCall(53, "POST", "/v1/tasks/1/retry", 404, wire.CodeNotFound),
		badCall(53, "GET", "/v1/tasks/1/explain", 404, wire.CodeNotFound),
		bad{53, "POST", "/v1/tasks/1/finish", `{"token":"1.1"}`, 404, wire.CodeNotFound, nil},
		bad{53, "POST", "/v1/tasks/1/fail", `{"token":"1.1","error":"x"}`, 404, wire.CodeNotFound, nil},
		bad{50, "POST", "/v1/tasks/1/finish", `{"token":"2.1"}`, 400, wire.CodeInvalidToken, nil},
		bad{50, "POST", "/v1/tasks/1/finish", `{"token":"1"}`, 400, wire.CodeInvalidToken, nil},
		bad{50, "POST", "/v1/tasks/1/finish", `{"token":"1.01"}`, 400, wire.CodeInvalidToken, nil},
		bad{50, "POST", "/v1/tasks/1/finish", `{"token":1.1}`, 400, wire.CodeInvalidJSON, nil},
		bad{50, "POST", "/v1/tasks/1/finish", `{}`, 400, wire.CodeInvalidToken, nil},
		bad{55, "POST", "/v1/tasks/1/touch", `{"token":"1.1"}`, 400, wire.CodeInvalidTTR, nil},
		bad{55, "POST", "/v1/tasks/1/touch", `{"token":"1.1","ttr":0}`, 400, wire.CodeInvalidTTR, nil},
		bad{55, "POST", "/v1/tasks/1/touch", `{"token":"1.1","ttr":-1}`, 400, wire.CodeInvalidJSON, nil},
		bad{59, "POST", "/v1/tasks", `{"tag":"t","id":9007199254740993.0}`, 400, wire.CodeInvalidJSON, nil},
	)
}

func badPages() []bad {
	parameter, option := wire.CodeInvalidParameter, wire.CodeInvalidOption
	return []bad{
		badCall(56, "POST", "/v1/tags/t/pop?wait=-1", 400, option), badCall(56, "POST", "/v1/tags/t/pop?wait=-1s", 400, option),
		badCall(56, "POST", "/v1/tags/t/pop?wait=soon", 400, option), badCall(56, "POST", "/v1/tags/t/pop?wait=1.5", 400, option),
		badCall(56, "POST", "/v1/tags/t/pop?ttr=-1", 400, wire.CodeInvalidTTR), badCall(56, "POST", "/v1/tags/t/pop?ttr=25h", 400, wire.CodeInvalidTTR),
		badCall(57, "POST", "/v1/tags/t/pop?max=0", 400, option), badCall(57, "POST", "/v1/tags/t/pop?max=-1", 400, option),
		badCall(57, "POST", "/v1/tags/t/pop?max=x", 400, parameter), badCall(57, "POST", "/v1/tags/t/pop?max=1.0", 400, parameter),
		badCall(57, "POST", "/v1/tags/t/pop?max=99999999999999999999", 400, parameter),
		badCall(57, "POST", "/v1/tags/t/pop?max=1&max=2", 400, parameter), badCall(57, "POST", "/v1/tags/t/pop?n=1", 400, parameter),
		badCall(57, "POST", "/v1/tags/t/pop?max=1;wait=2", 400, parameter), badCall(57, "POST", "/v1/tags/t/pop?max=%zz", 400, parameter),
		badCall(57, "POST", "/v1/pop", 400, wire.CodeInvalidTag), badCall(57, "POST", "/v1/pop?tag=a&tag=", 400, wire.CodeInvalidTag),
		badCall(76, "GET", "/v1/tasks?limit=-1", 400, option), badCall(76, "GET", "/v1/tasks?limit=many", 400, parameter),
		badCall(76, "GET", "/v1/tasks?status=done", 400, option), badCall(76, "GET", "/v1/tasks?status=Pending", 400, option),
		badCall(76, "GET", "/v1/tasks?due_before=yesterday", 400, wire.CodeInvalidTime), badCall(76, "GET", "/v1/tasks?tag=%20", 400, wire.CodeInvalidTag),
		badCall(76, "GET", "/v1/tasks?bodies=maybe", 400, parameter),
		badCall(76, "GET", "/v1/tasks?tags=t", 400, parameter),
		badCall(76, "GET", "/v1/tags/t/lateness?window=-1", 400, option),
		badCall(75, "GET", "/v1/tasks?cursor=x", 400, wire.CodeInvalidCursor), badCall(75, "GET", "/v1/tasks?cursor=%00", 400, wire.CodeInvalidCursor),
		badCall(75, "GET", "/v1/tasks?cursor=AAAAAAAAAAEAAAAAAAAAAA", 400, wire.CodeInvalidCursor),
		badCall(75, "GET", "/v1/tasks?cursor="+strings.Repeat("A", 4096), 400, wire.CodeInvalidCursor),
	}
}

func badJSON() (rows []bad) {
	for _, body := range []string{`[]`, `123`, `"x"`, `true`, `{"tag":"t"}{"tag":"t"}`, `{"tag":"t"} x`, `{"tag":"t"},`, `{`, `{"tag":"t"`, ` `, "\ufeff" + `{"tag":"t"}`} {
		rows = append(rows, badBody(60, body))
	}
	for _, members := range []string{`"dealy":"1h"`, `"delay":"1h","delay":"2h"`, `"Delay":"1h"`, `"DELAY":1`, `"tag":"u"`, `"":1`, `"delay":"1h","d\u0065lay":"1h"`,
		`"body":{"a":1,"a":2}`, `"` + strings.Repeat("x", 60<<10) + `":1`} {
		rows = append(rows, badSave(61, members, 400, wire.CodeInvalidJSON))
	}
	var keys strings.Builder
	for i := range 1_000_000 {
		keys.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	return append(rows,
		bad{60, "POST", "/v1/tasks", `{}`, 400, wire.CodeInvalidTag, nil}, bad{60, "POST", "/v1/tasks", `null`, 400, wire.CodeInvalidTag, nil},
		badCall(60, "POST", "/v1/tasks", 400, wire.CodeInvalidJSON),
		bad{60, "PATCH", "/v1/tasks/1", `{}`, 400, wire.CodeInvalidOption, nil},
		bad{60, "POST", "/v1/tasks/finish", `{}`, 400, wire.CodeInvalidJSON, nil},
		bad{60, "POST", "/v1/workers", `{}`, 400, wire.CodeInvalidParameter, nil},
		bad{60, "POST", "/v1/tags/t/pop", `{"max":5}`, 400, wire.CodeInvalidJSON, nil},
		badSave(62, `"body":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000), 400, wire.CodeInvalidJSON),
		badBody(62, strings.Repeat("[", 100_000)), badBody(62, strings.Repeat(`{"a":`, 10_000)),
		badSave(62, keys.String()+`"x":0`, 413, wire.CodeRequestTooLarge),
		bad{62, "POST", batchPath, "[{" + keys.String() + `"tag":"t"}]`, 400, wire.CodeInvalidJSON, nil},
	)
}

func badHeaders() (rows []bad) {
	task := `{"tag":"t"}`
	media := func(header ...string) {
		rows = append(rows, bad{63, "POST", "/v1/tasks", task, 415, wire.CodeUnsupportedMediaType, header})
	}
	media("Content-Type", "")
	media("Content-Type", "text/plain")
	media("Content-Type", "application/x-www-form-urlencoded")
	media("Content-Type", "application/x-ndjson")
	media("Content-Type", "application/json; charset=utf-16")
	media("Content-Type", "application/json;;")
	media("Content-Encoding", "gzip")
	media("Content-Encoding", "br")
	media("Content-Encoding", "identity, gzip")
	for _, method := range []string{"PUT", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"} {
		rows = append(rows, badCall(65, method, "/v1/tasks", 405, wire.CodeMethodNotAllowed))
	}
	long := strings.Repeat("k", 256)
	return append(rows,
		badCall(65, "HEAD", "/v1/tasks/1", 405, wire.CodeMethodNotAllowed), badCall(65, "GET", batchPath, 400, wire.CodeInvalidID),
		badCall(65, "DELETE", "/healthz", 405, wire.CodeMethodNotAllowed), badCall(65, "POST", "/docs", 405, wire.CodeMethodNotAllowed),
		badCall(65, "GET", "/v1", 404, wire.CodeNoSuchRoute), badCall(65, "GET", "/", 404, wire.CodeNoSuchRoute),
		badCall(65, "GET", "/v1/tasks/", 404, wire.CodeNoSuchRoute), badCall(65, "GET", "/v2/tasks", 404, wire.CodeNoSuchRoute),
		bad{67, "POST", "/v1/tasks", task, 400, wire.CodeInvalidParameter, []string{"Idempotency-Key", long}},
		bad{67, "POST", "/v1/tasks", task, 403, wire.CodeCrossOrigin, []string{"Sec-Fetch-Site", "cross-site"}},
		bad{67, "POST", "/v1/tasks", task, 403, wire.CodeCrossOrigin, []string{"Origin", "https://evil.example"}},
	)
}

func badLists() []bad {
	many := strings.TrimSuffix(strings.Repeat(`{"tag":"t"},`, mostBatch+1), ",")
	lines := strings.Repeat(`{"tag":"t"}`+"\n", mostBatch+1)
	nd := []string{"Content-Type", mediaNDJSON}
	batch := func(n int, body, code string, header ...string) bad {
		return bad{n, "POST", batchPath, body, 400, code, header}
	}
	tokens := strings.TrimSuffix(strings.Repeat(`"1.1",`, mostBatch+1), ",")
	return []bad{
		batch(31, "["+many+"]", wire.CodeBatchTooLarge), batch(31, lines, wire.CodeBatchTooLarge, nd...),
		{31, "POST", "/v1/tasks/finish", `{"tokens":[` + tokens + `]}`, 400, wire.CodeBatchTooLarge, nil},
		{31, "POST", batchPath, strings.Repeat(" ", mostBatchBytes+1), 413, wire.CodeRequestTooLarge, nil},
		batch(32, `[{"tag":"t"},{"tag":""}]`, wire.CodeInvalidTag), batch(32, `[{"tag":"t"},{"tag":"t","delay":-1}]`, wire.CodeInvalidJSON),
		batch(32, `[{"tag":"t"},null]`, wire.CodeInvalidTag), batch(32, `[{"tag":"t"},[]]`, wire.CodeInvalidJSON),
		batch(32, `{"tag":"t"}`, wire.CodeInvalidJSON), batch(32, `[{"tag":"t"}`, wire.CodeInvalidJSON), batch(32, `null`, wire.CodeInvalidJSON),
		batch(32, "{\"tag\":\"t\"}\n{\"tag\":\"t\"", wire.CodeInvalidJSON, nd...),
		batch(32, "{\"tag\":\"t\"}\n{\"tag\":\"t\"} {\"tag\":\"t\"}", wire.CodeInvalidJSON, nd...),
		batch(32, "{\"tag\":\"t\"}\n[{\"tag\":\"t\"}]", wire.CodeInvalidJSON, nd...),
		batch(32, `[{"tag":"t","key":"`+strings.Repeat("k", 256)+`"}]`, wire.CodeInvalidKey),
		batch(32, `[{"tag":"t"}]`, wire.CodeInvalidHeader, "Idempotency-Key", "k"),
		{32, "POST", batchPath, `[{"tag":"t","body":"` + strings.Repeat("x", testBodyLimit) + `"}]`, 413, wire.CodeBodyTooLarge, nil},
	}
}

// TestBadInputGetsItsAnswerAndNothingIsStored holds the part of the list of bad inputs that concerns HTTP.
func TestBadInputGetsItsAnswerAndNothingIsStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, rows := range [][]bad{
		badTags(), badBodies(), badTimes(), badOptions(), badIDs(), badPages(), badJSON(), badHeaders(), badLists(),
	} {
		for _, b := range rows {
			got := s.send(b.method, b.target, b.body, b.header...)
			if got.status != b.status || got.Code != b.code {
				t.Errorf("%d: %s %.100s %.100s %.60q: %d %.300s, want %d %s",
					b.n, b.method, b.target, b.body, b.header, got.status, got.text, b.status, b.code)
			}
			if len(got.text) > 1500 {
				t.Errorf("%d: %s %.60s %.60s: the answer has %d bytes: %.200s", b.n, b.method, b.target, b.body, len(got.text), got.text)
			}
			for _, word := range []string{"wire.", "json:", "jsontext", "strconv", "Go ", "int64", "runtime", "huma", "reflect"} {
				if strings.Contains(got.text, word) {
					t.Errorf("%d: the answer speaks of %q: %s", b.n, word, got.text)
				}
			}
			if got.status == http.StatusMethodNotAllowed && got.header.Get("Allow") == "" {
				t.Errorf("%d: %s %s: 405 without Allow", b.n, b.method, b.target)
			}
		}
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks were stored by requests that were refused", n)
	}
}
