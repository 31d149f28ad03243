package httpapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestABodyWithoutEndIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.BodyWait = 50 * time.Millisecond })
	server := httptest.NewServer(s.api)
	defer server.Close()
	head := "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for _, begun := range []string{
		"Content-Length: 100\r\n\r\n", "Content-Length: 100\r\n\r\n{\"tag\":", "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"tag\":\r\n",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, head+begun); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays open", begun)
		}
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), wire.CodeRequestTimeout) {
			t.Errorf("%q: %s", begun, answer)
		}
		_ = conn.Close()
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d tasks are stored", n)
	}
}

// TestALargeBatchTakesABoundedMultipleOfItself watches the heap while 10,000 tasks of 32 MiB are saved.
func TestALargeBatchTakesABoundedMultipleOfItself(t *testing.T) {
	if testing.Short() {
		t.Skip("saves 32 MiB")
	}
	s := newSite(t, patient)
	line := `{"tag":"t","delay":"1h","body":"` + strings.Repeat("x", 3300) + `"}` + "\n"
	body := strings.Repeat(line, mostBatch)
	ended, most := make(chan struct{}), make(chan uint64)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var highest uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapInuse)
			select {
			case <-ticker.C:
			case <-ended:
				most <- highest
				return
			}
		}
	}()
	got := s.send("POST", batchPath, body, "Content-Type", mediaNDJSON)
	close(ended)
	grown := int64(<-most) - int64(before.HeapInuse)
	if got.status != http.StatusOK {
		t.Fatalf("got %d %.300s", got.status, got.text)
	}
	if times := float64(grown) / float64(len(body)); times > 10 {
		t.Errorf("%d bytes took %.1f times as much memory", len(body), times)
	} else {
		t.Logf("%d bytes took %.1f times as much memory", len(body), times)
	}
}

// The server waits for the rest of a body before it answers, also where the answer does not depend on it.
func TestABodyThatNeverComesHoldsNoConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.BodyWait = 50 * time.Millisecond })
	server := httptest.NewServer(s.api)
	defer server.Close()
	for _, line := range []string{"POST /nosuch", "POST /healthz", "GET /healthz", "POST /v1/tasks", "DELETE /v1/tasks"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, line+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
		if err := errors.Join(err, conn.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the server still waits for the body", line)
		}
		_ = conn.Close()
	}
}
