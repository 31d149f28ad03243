package inbound

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// covered hides the connection from the standard library, as a middleware does.
type covered struct{ http.ResponseWriter }

func (c covered) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// The client of each of these waits for its answer and sends no more. Where the server waited for the rest of the body, before or
// after its answer, the test would fail at its own deadline.
func TestABodyThatIsNotReadIsAnsweredAtOnceAndEndsItsConnection(t *testing.T) {
	t.Parallel()
	f := func(wait time.Duration, sent string, want int) {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := Body(covered{w}, r, 10, wait)
			status := http.StatusOK
			if unreadable, ok := errors.AsType[*BodyError](err); ok {
				status = unreadable.Status
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}))
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+sent)
		if err := errors.Join(err, conn.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%.60q: %v", sent, err)
		}
		if _ = res.Body.Close(); res.StatusCode != want || (want != http.StatusOK) != res.Close {
			t.Errorf("%.60q: %d, closing %t; want %d", sent, res.StatusCode, res.Close, want)
		}
		if want == http.StatusOK {
			return
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.60q: the server still waits for the rest", sent)
		}
	}
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	f(time.Hour, "Content-Length: 10\r\n\r\n0123456789", http.StatusOK)
	f(time.Hour, "Content-Length: 11\r\n\r\n01234567890", http.StatusRequestEntityTooLarge)
	f(time.Hour, chunked+"100\r\n"+strings.Repeat("x", 0x100)+"\r\n", http.StatusRequestEntityTooLarge)
	f(time.Hour, chunked+"zz\r\n", http.StatusBadRequest)
	f(50*time.Millisecond, "Content-Length: 10\r\n\r\n012", http.StatusRequestTimeout)
	f(50*time.Millisecond, chunked+"3\r\n012\r\n", http.StatusRequestTimeout)
}
