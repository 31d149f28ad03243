package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// canary is part of everything that must never be logged.
const canary = "C4nary"

// canarySecret signs calls, and contains the canary in encoded form.
var canarySecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(canary, 5)))

func TestNoSecretIsEverLogged(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		if db.Kind != dbtest.SQLite {
			db.DSN = withPassword(t, db)
		}
		var spans atomic.Int64
		receiver := servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/collector/") {
				spans.Add(1)
				sent, _ := io.ReadAll(r.Body)
				// An invalid tag, which the error of its save quotes.
				sent = bytes.ReplaceAll(sent, []byte(`"`+canary+`!"`), nil)
				if bytes.Contains(sent, []byte(canary)) {
					t.Errorf("a span holds it: %q", sent)
				}
			}
			w.Header().Set("X-Answer", canary)
			if r.URL.Path == "/moved" {
				w.Header().Set("Location", "https://example.com/?token="+canary)
				w.WriteHeader(http.StatusFound)
			} else if r.URL.Path != "/ok" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = w.Write([]byte(canary)) // the caller may have gone
		})
		file := filepath.Join(t.TempDir(), "service.yaml")
		content := fmt.Sprintf("receivers: {static: {url: %q, secrets: [%s]}}\n", receiver+"/broken?token="+canary,
			canarySecret)
		servertest.OK(t, os.WriteFile(file, []byte(content), 0o600))
		s := serve(t, db, "DELAYTASK_LOG_LEVEL=debug", "DELAYTASK_CONFIG="+file, "DELAYTASK_SERVER_AUTH=token",
			"DELAYTASK_SERVER_GET_TOPICS=*",
			"DELAYTASK_SECRET=secret-"+canary+"-secret", "DELAYTASK_BACKOFF_BASE=100ms", "DELAYTASK_MAX_ATTEMPTS=2",
			"DELAYTASK_STOP_GRACE=100ms", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=api-key="+canary,
			"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver+"/collector/"+canary)
		bearer := token(t, db, "a", "*", "all")
		s.becomes(200, "GET", "/v1/stats", bearer...)
		c := canaries{s, bearer, receiver}
		c.routes()
		c.calls()
		c.failures()
		c.broken()
		if db.Kind != dbtest.SQLite {
			c.withoutColumn(t, db)
		}
		s.Stops()
		logged := s.Out.String() + s.Err.String()
		for _, secret := range []string{canary, strings.TrimPrefix(canarySecret, "whsec_"),
			strings.TrimPrefix(bearer[1], "Bearer ")} {
			for line := range strings.Lines(logged) {
				if strings.Contains(line, secret) {
					t.Errorf("logged: %s", line)
				}
			}
		}
		if spans.Load() == 0 {
			t.Error("no span was sent, so the test shows little")
		}
		for _, want := range []string{"level=INFO", "level=WARN", "msg=request", "spans are lost"} {
			if !strings.Contains(logged, want) {
				t.Errorf("%s was not logged, so the test shows little", want)
			}
		}
	})
}

// canaries sends the canary in every place.
type canaries struct {
	*server
	bearer   []string
	receiver string
}

func (c canaries) send(method, path, body string, headers ...string) servertest.Answer {
	c.TB.Helper()
	headers = append(headers, "X-Canary", canary)
	if !slices.Contains(headers, "Authorization") {
		headers = append(headers, c.bearer...)
	}
	return c.Call(method, path, body, headers...)
}

func (c canaries) must(status int, method, path, body string, headers ...string) {
	c.TB.Helper()
	if a := c.send(method, path, body, headers...); a.Status != status {
		c.TB.Errorf("%s %s: %d %s, want %d", method, path, a.Status, a.Text, status)
	}
}

// routes calls every route, with valid and invalid requests.
func (c canaries) routes() {
	const save = `{"tag":"t","key":"` + canary + `","body":{"secret":"` + canary + `"},"headers":{"h":"` + canary +
		`"},"delay":"1h"}`
	const byKey = "/v1/tags/t/keys/" + canary
	for _, call := range [][3]string{
		{"POST", "/v1/tasks", save}, {"POST", "/v1/tasks", save}, // the second is a duplicate
		{"POST", "/v1/tasks/batch", "[" + save + `,{"tag":"t","body":"` + canary + `"},{"tag":"t","id":"1"}]`},
		{"POST", "/v1/tasks", `{"tag":"` + canary + `!"}`}, {"POST", "/v1/tasks", `{"tag":"t","` + canary + `":1}`},
		{"POST", "/v1/tasks", `{"` + canary}, {"POST", "/v1/tasks", `{"tag":"t","delay":"` + canary + `"}`},
		{"GET", byKey, ""}, {"PATCH", byKey, `{"body":"` + canary + `"}`}, {"GET", byKey + "/explain", ""},
		{"GET", "/v1/tasks?tag=t&key=" + canary, ""}, {"GET", "/v1/tasks?cursor=" + canary, ""},
		{"GET", "/v1/tasks?" + canary + "=1", ""},
		{"DELETE", byKey, ""}, {"POST", byKey + "/retry", ""}, {"GET", "/v1/tasks/" + canary, ""},
		{"POST", "/v1/tags/t/pop?wait=" + canary, ""}, {"POST", "/v1/tasks/1/finish", `{"token":"` + canary + `"}`},
		{"POST", "/v1/tasks/1/fail", `{"token":"1.1","error":"` + canary + `"}`},
		{"POST", "/v1/tasks/finish", `{"tokens":["1.1","` + canary + `"]}`},
		{"POST", "/v1/tasks/1/touch", `{"token":"1.1","ttr":"1m"}`}, {"POST", "/v1/tasks/1/release", `{"token":"1.1"}`},
		{"GET", "/" + canary, ""}, {"GET", "/v1/" + canary + "/..//" + canary, ""}, {canary, "/v1/tasks", ""},
		{"GET", "/v1/tags", ""}, {"GET", "/v1/nodes", ""}, {"GET", "/v1/stats", ""}, {"GET", "/metrics", ""},
		{"GET", "/docs", ""},
		{"GET", "/v1/tags/t/lateness?window=" + canary, ""}, {"POST", "/v1/tags/" + canary + "%21/pause", ""},
		{"POST", "/o/add", `{"topic":"o","id":"` + canary + `","delay":0,"ttr":5,"body":"` + canary + `"}`},
		{"GET", "/o/get?topic=o&" + canary, ""}, {"GET", "/o/complete?id=" + canary, ""},
		{"POST", "/compat/topics", `{"command":"add","topic":"o","id":"` + canary + `2","body":"` + canary + `"}`},
		{"POST", "/compat/topics", canary},
	} {
		c.send(call[0], call[1], call[2])
	}
	c.send("POST", "/v1/tasks", `{"tag":"t","delay":"1h"}`, "Idempotency-Key", canary)
	c.must(422, "POST", "/v1/tasks", `{"tag":"t","delay":"2h"}`, "Idempotency-Key", canary)
	c.must(401, "GET", "/v1/tasks", "", "Authorization", "Bearer "+canary)
	c.must(403, "POST", "/v1/tasks", `{}`, "Origin", "https://"+canary+".example")
	c.must(415, "POST", "/v1/tasks", `{}`, "Content-Type", canary)
}

// calls has addresses called that succeed, fail, or never answer.
func (c canaries) calls() {
	for i, path := range []string{c.receiver + "/ok", c.receiver + "/broken", c.receiver + "/moved",
		"http://127.0.0.1:1/"} {
		url := path + "?token=" + canary
		register := fmt.Sprintf(`{"app":"a%d","address":%q,"tags":["called"],"secret":%q}`, i, url, canarySecret)
		c.must(201, "POST", "/v1/receivers", register)
		c.must(201, "POST", "/v1/tasks", fmt.Sprintf(`{"tag":"called","app":"a%d","body":%q}`, i, canary))
		c.send("POST", "/v1/tasks",
			fmt.Sprintf(`{"tag":"http","body":{"url":%q,"headers":{"authorization":%q},"passrule":{"a":%q}}}`, url,
				canary, canary))
	}
	c.send("POST", "/v1/tasks", `{"tag":"http","body":{"url":"http://user:`+canary+`@10.0.0.1/?`+canary+`"}}`)
	c.send("POST", "/v1/receivers",
		`{"app":"a","address":"http://10.0.0.1/?`+canary+`","tags":["called"],"secret":"`+canary+`"}`)
	c.must(201, "POST", "/v1/tasks", `{"tag":"static","body":"`+canary+`"}`)
	failed := func(tag string, n int) {
		c.TB.Helper()
		servertest.Eventually(c.TB, fmt.Sprintf("%d calls of %s have failed for good", n, tag), func() bool {
			text := c.send("GET", "/v1/tasks?status=failed&tag="+tag, "").Text
			return strings.Count(text, `"status":"failed"`) >= n
		})
	}
	failed("called", 3)
	failed("http", 3)
	failed("static", 1)
}

// failures has tasks fail with texts of their executors that hold secrets. Some texts are cut.
func (c canaries) failures() {
	for _, failure := range []string{
		"dial redis://me:" + canary + "@10.0.0.1/0: password=" + canary, `{"token":"` + canary + `"}`,
		strings.Repeat("x ", 500) + "me:" + strings.Repeat(canary, 50) + "@tcp(db:3306)/app",
	} {
		c.must(201, "POST", "/v1/tasks", `{"tag":"fails"}`)
		var popped struct {
			Tasks []struct{ ID, Token string }
		}
		servertest.OK(c.TB, json.Unmarshal([]byte(c.send("POST", "/v1/tags/fails/pop?wait=5s", "").Text), &popped))
		if len(popped.Tasks) == 0 {
			c.TB.Fatal("no task was popped")
		}
		c.must(204, "POST", "/v1/tasks/"+popped.Tasks[0].ID+"/fail", fmt.Sprintf(
			`{"token":%q,"permanent":true,"error":%q}`, popped.Tasks[0].Token, failure))
	}
}

// broken sends malformed HTTP.
func (c canaries) broken() {
	for _, text := range []string{
		canary + "\r\n\r\n", "GET /" + canary + " HTTP/9.9\r\n\r\n",
		"GET /v1/stats HTTP/1.1\r\nHost: " + canary + "\r\n" + canary + "\r\n\r\n",
		"\x16\x03\x01" + canary, "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat(canary, 10_000) + "\r\n\r\n",
		"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + canary,
	} {
		servertest.Speak(c.TB, c.URL, text, true)
	}
}

// withoutColumn makes every statement fail with the database's own error.
func (c canaries) withoutColumn(t *testing.T, db dbtest.Database) {
	t.Helper()
	for _, move := range []string{"message_body TO gone", "gone TO message_body"} {
		servertest.Exec(t, db.DSN, "ALTER TABLE delay_task_message RENAME COLUMN "+move)
		c.send("POST", "/v1/tasks", `{"tag":"t","key":"`+canary+`","body":"`+canary+`"}`)
		c.send("GET", "/v1/tags/t/keys/"+canary, "")
		c.send("POST", "/compat/topics", `{"command":"finish","topic":"o","id":"`+canary+`2"}`)
		c.send("GET", "/o/complete?id="+canary, "")
		c.send("POST", "/o/add", `{"topic":"o","id":"`+canary+`3","delay":0,"ttr":5,"body":"`+canary+`"}`)
	}
}

// withPassword creates a user whose password is the canary, and returns its DSN.
func withPassword(t *testing.T, db dbtest.Database) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(db.DSN)
	servertest.OK(t, err)
	user := "canary" + cfg.DBName[len(cfg.DBName)-12:]
	pool := servertest.SQL(t, db.DSN)
	for _, statement := range []string{
		"CREATE USER '" + user + "'@'%' IDENTIFIED BY '" + canary + "'",
		"GRANT ALL ON `" + cfg.DBName + "`.* TO '" + user + "'@'%'",
	} {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = pool.Exec("DROP USER '" + user + "'@'%'") })
	cfg.User, cfg.Passwd = user, canary
	return cfg.FormatDSN()
}
