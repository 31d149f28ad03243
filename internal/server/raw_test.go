package server

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// answers are the statuses and the codes in what the server has sent.
func answers(t *testing.T, text string) (found []string) {
	t.Helper()
	reader := bufio.NewReader(strings.NewReader(text))
	for {
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			return found
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		var p wire.Problem
		if err == nil && res.Header.Get("Content-Type") == "application/problem+json" {
			err = json.Unmarshal(body, &p)
		}
		if err != nil {
			return append(found, err.Error())
		}
		found = append(found, strings.TrimSpace(res.Status[:3]+" "+p.Code))
	}
}

func TestBrokenConversationsAreAnsweredAndEnded(t *testing.T) {
	t.Parallel()
	r := serve(t, sqlite(t))
	post := "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	last := post + "Connection: close\r\n"
	task := `{"tag":"t","delay":"1h"}` // 24 bytes
	f := func(text string, want ...string) {
		t.Helper()
		// Where the server would wait for more, the client ends its side. Elsewhere the server would take that for a
		// client that has gone, and end the request.
		shut := len(want) == 0 || slices.Contains([]string{"400 unreadable_body", "400 invalid_json"},
			want[len(want)-1])
		got := answers(t, servertest.Speak(t, r.URL, text, shut))
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%.150q is answered %q, want %q", text, got, want)
		}
	}
	f(last+"Content-Length: 24\r\n\r\n"+task, "201")

	// A length that lies.
	f(post+"Content-Length: 25\r\n\r\n"+task, "400 unreadable_body")
	f(post+"Content-Length: 23\r\n\r\n"+task, "400 invalid_json")
	f(post+"Content-Length: 24\r\nContent-Length: 25\r\n\r\n"+task, "400")
	f(post+"Content-Length: -1\r\n\r\n"+task, "400")
	f(post+"Content-Length: 99999999999999999999\r\n\r\n"+task, "400")
	f(post+"Content-Length: 2000000000\r\n\r\n"+task, "400 unreadable_body")
	// No length is a length of 0, and what follows is the next request.
	f(post+"\r\n"+task+"\r\n\r\n", "400 invalid_json", "400")

	// Chunks.
	f(last+"Transfer-Encoding: chunked\r\n\r\n18\r\n"+task+"\r\n0\r\n\r\n", "201")
	f(post+"Transfer-Encoding: chunked\r\n\r\n18\r\n"+task+"\r\n", "400 unreadable_body")
	f(post+"Transfer-Encoding: chunked\r\n\r\nzz\r\n"+task+"\r\n0\r\n\r\n", "400 unreadable_body")
	f(post+"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "400 unreadable_body")
	chunks := strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 20)
	f(post+"Transfer-Encoding: chunked\r\n\r\n"+chunks, "413 request_too_large")
	f(post+"Transfer-Encoding: gzip\r\n\r\n"+task, "501")

	// A client that asks before it sends.
	f(last+"Expect: 100-continue\r\nContent-Length: 24\r\n\r\n"+task, "100", "201")
	f(post+"Expect: the impossible\r\nContent-Length: 24\r\n\r\n"+task, "417")

	// Headers.
	f(post+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", "431")
	f(post+strings.Repeat("X: y\r\n", 20_000)+"\r\n", "431")
	f("GET /v1/tags HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n", "400")
	f("GET /v1/tags HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", "400")
	f("GET /v1/tags HTTP/1.1\r\n\r\n", "400")
	f("GET /v1/tags HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400")
	f("GET /v1/tags HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "421 misdirected_request")
	f("GET http://evil.example/v1/tags HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"421 misdirected_request")

	// Methods and versions.
	for _, line := range []string{"CONNECT /v1/tasks", "TRACE /v1/tasks", "OPTIONS /v1/tasks", "BREW /v1/tasks"} {
		f(line+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "405 method_not_allowed")
	}
	f("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "405 method_not_allowed")
	f("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "405 method_not_allowed")
	f("GET /v1/tags HTTP/1.0\r\n\r\n", "421 misdirected_request")
	f("GET /v1/tags HTTP/1.0\r\nHost: localhost\r\n\r\n", "200")
	f("GET /v1/tags HTTP/3.0\r\nHost: localhost\r\n\r\n", "505")
	f("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "421 misdirected_request")
	f("GET /v1/tags\r\n\r\n", "400")
	f("GET /v1/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "400")
	f("GET v1/tags HTTP/1.1\r\nHost: localhost\r\n\r\n", "400")

	// One after another.
	get := "GET /v1/tags HTTP/1.1\r\nHost: localhost\r\n\r\n"
	f(get+get+get+"\x00\x01\x02\x03 garbage\r\n\r\n", "200", "200", "200", "400")
	f("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n", "400")
	f("")
	f("\r\n\r\n\r\n", "400")

	if stats := r.Want(200, "", "GET", "/v1/stats", ""); !strings.Contains(stats.Text,
		`"tag":"t","counts":{"pending":3}`) {
		t.Errorf("three tasks were sent whole: %s", stats.Text)
	}
	if text := r.logged.String(); strings.Contains(text, "panic") {
		t.Errorf("logged %s", text)
	}
}

func TestHeadersThatDoNotComeAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	r := serve(t, sqlite(t), func(s *Service) {
		s.server.ReadHeaderTimeout, s.server.IdleTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	for _, begun := range []string{"", "GET /v1/ta", "GET /v1/tags HTTP/1.1\r\nHost: localhost\r\nX: y"} {
		servertest.Speak(t, r.URL, begun, false)
	}
}
