package service

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// connections opens so many, sends the same on each, and returns the status lines of the first so many answers. They
// stay open until the test ends.
func (s *server) connections(many, answers int, head string) (lines []string) {
	s.TB.Helper()
	for n := range many {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		servertest.OK(s.TB, err)
		s.TB.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte(head)) // the server may have closed it
		if n < answers {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			line, _ := bufio.NewReader(conn).ReadString('\n')
			lines = append(lines, line)
		}
	}
	return lines
}

func TestStrangersAndWeakTokensShutOutNoOther(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db, "DELAYTASK_SERVER_AUTH=token", "DELAYTASK_SERVER_MAX_CONNECTIONS=100")
	weak, other := token(t, db, "weak", "weak.*", "work"), token(t, db, "other", "*", "save,work")
	s.becomes(204, "POST", "/v1/tags/weak.a/pop", weak...)
	s.becomes(204, "POST", "/v1/tags/other/pop", other...)
	const last = " HTTP/1.1\r\nHost: localhost\r\n"
	open := func(name string, many, answers int, want, head string) {
		t.Helper()
		for _, line := range s.connections(many, answers, head) {
			if !strings.HasPrefix(line, "HTTP/1.1 "+want) {
				t.Errorf("%s: one is answered %q", name, line)
			}
		}
		began := time.Now()
		client := http.Client{Timeout: patience / 4}
		for _, path := range []string{"/healthz", "/readyz"} {
			res, err := client.Get(s.URL + path)
			if err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s: %v, %v", name, path, res, err)
			}
		}
		s.Want(201, "", "POST", "/v1/tasks", `{"tag":"other"}`, other...)
		s.Want(200, "", "POST", "/v1/tags/other/pop?wait=50s", "", other...)
		t.Logf("%s: all answered after %v", name, time.Since(began))
	}
	open("connections of strangers that have asked", 150, 150, "200", "GET /healthz"+last+"\r\n")
	open("connections of strangers", 150, 0, "", "")
	open("refused bodies", 150, 0, "", "POST /v1/tasks"+last+"Content-Length: 1000\r\n\r\n")
	pop := "POST /v1/tags/weak.a/pop?wait=50s" + last + weak[0] + ": " + weak[1] + "\r\n\r\n"
	open("pops of a token", 150, 0, "", pop)
	servertest.Eventually(t, "one more pop of it is refused", func() bool {
		a := s.Call("POST", "/v1/tags/weak.a/pop", "", weak...)
		return a.Status == http.StatusTooManyRequests && a.Header.Get("Retry-After") != ""
	})
	open("connections of strangers", 150, 0, "", "")
}
