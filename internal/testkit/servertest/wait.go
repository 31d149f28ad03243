package servertest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen in the end, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// OK ends the test when err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	given := time.After(patience)
	for !holds() {
		select {
		case <-given:
			t.Fatalf("after %v not yet: %s", patience, what)
		case <-poll.C:
		}
	}
}

func Receive[T any](t testing.TB, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("after %v not yet: %s", patience, what)
	}
	return v
}

// Speak sends bytes to an address as no client library would, and returns all that is answered until the server hangs
// up. With shut the server is told that nothing follows. One that does not hang up fails the test.
func Speak(t testing.TB, url, text string, shut bool) (answered string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text) // the server may have hung up before it has read everything
	if shut {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	var answer bytes.Buffer
	if _, err := io.Copy(&answer, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.80q: the server does not hang up", text)
	}
	return answer.String()
}
