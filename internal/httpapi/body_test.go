package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// The server waits for the rest of a body before it answers, also where the answer does not depend on it. The client of each of
// these sends no more; [servertest.Speak] wants the server to hang up.
func TestABodyThatNeverComesHoldsNoConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.BodyWait = 50 * time.Millisecond })
	server := httptest.NewServer(s.api)
	defer server.Close()
	say := func(line, rest string) string {
		t.Helper()
		head := line + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		return servertest.Speak(t, server.URL, head+rest, false)
	}
	const length, chunks = "Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, begun := range []string{length, length + `{"tag":`, chunks, chunks + "7\r\n{\"tag\":\r\n"} {
		answer := say("POST /v1/tasks", begun)
		if !strings.HasPrefix(answer, "HTTP/1.1 408 ") || !strings.Contains(answer, wire.CodeRequestTimeout) {
			t.Errorf("%q: %s", begun, answer)
		}
	}
	for _, line := range []string{"POST /nosuch", "POST /healthz", "GET /healthz", "DELETE /v1/tasks"} {
		say(line, length)
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks are stored", n)
	}
}
