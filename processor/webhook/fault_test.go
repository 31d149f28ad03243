package webhook

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

type netConn = net.Conn

// listen runs a receiver that speaks what it likes, and returns its URL.
func listen(t *testing.T, handle func(conn netConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	mustOK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	return "http://" + listener.Addr().String() + "/"
}

// readRequest reads a whole request, and reports whether one came.
func readRequest(conn netConn) bool {
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func untilClosed(conn netConn) { _, _ = io.Copy(io.Discard, conn) }

func reset(conn netConn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// Whatever a receiver does, the call ends, spends one attempt, and its error quotes nothing.
func TestBrokenReceiverSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	say := func(text string, then func(netConn)) func(netConn) {
		return func(conn netConn) {
			if readRequest(conn) {
				_, _ = io.WriteString(conn, text)
				then(conn)
			}
		}
	}
	forever := func(piece string) func(netConn) {
		return func(conn netConn) {
			for {
				if _, err := io.WriteString(conn, piece); err != nil {
					return
				}
			}
		}
	}
	blurt := func(text string) func(netConn) {
		return func(conn netConn) { _, _ = io.WriteString(conn, text) }
	}
	closed := func(netConn) {}
	const ok, silence = "HTTP/1.1 200 OK\r\n", "no whole answer in time"
	const upgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: canary\r\n\r\n"
	rule, err := ParseRule([]byte(`{"code":1}`))
	mustOK(t, err)
	for _, tt := range []struct {
		name    string
		handle  func(netConn)
		https   bool
		rule    Rule
		timeout time.Duration // where the wait for the header is not what ends the call
		want    string
	}{
		{name: "hang before the request", handle: untilClosed, want: silence},
		{name: "hang", handle: say("", untilClosed), want: silence},
		{name: "drip in the header", handle: say("HTTP/1.1 200 canary", untilClosed), want: silence},
		{name: "drip in the body", handle: say(ok+"\r\ncanary", untilClosed), timeout: 100 * time.Millisecond,
			want: silence},
		{name: "hang in TLS", https: true, handle: untilClosed, timeout: 100 * time.Millisecond, want: silence},
		{name: "endless header", handle: say(ok, forever("X-Canary: canary\r\n")), want: "not HTTP"},
		{name: "endless body under a rule", handle: say(ok+"\r\n", forever("canary")), rule: rule, want: "longer than"},
		{name: "close", handle: say("", closed), want: "ended before"},
		{name: "reset", handle: say("", reset), want: "connection reset"},
		{name: "200 then close", handle: say(ok+"Content-Length: 10\r\n\r\ncanary", closed), want: "ended before"},
		{name: "200 then reset", handle: say(ok+"Content-Length: 10\r\n\r\n", reset), want: "connection"},
		{name: "banner", handle: say("SSH-2.0-canary\r\n", closed), want: "not HTTP"},
		{name: "status", handle: say("HTTP/1.1 canary OK\r\n\r\n", closed), want: "not HTTP"},
		{name: "header line", handle: say(ok+"canary\r\n\r\n", closed), want: "not HTTP"},
		{name: "length", handle: say(ok+"Content-Length: canary\r\n\r\n", closed), want: "not HTTP"},
		{name: "another protocol", handle: say(upgrade, untilClosed), want: "answered 101"},
		{name: "garbage for TLS", https: true, handle: blurt("canary\r\n\r\n"), want: "TLS"},
		{name: "HTTP for TLS", https: true, handle: blurt("HTTP/1.1 400 canary\r\n\r\n"), want: "TLS"},
		{name: "close in TLS", https: true, handle: closed, want: "connection"},
		{name: "no object", handle: say(ok+"Content-Length: 8\r\n\r\n\"canary\"", closed), rule: rule,
			want: "not a JSON object"},
		{name: "another value", handle: say(ok+"Content-Length: 17\r\n\r\n{\"code\":\"canary\"}", closed), rule: rule,
			want: `differs at "code"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := listen(t, tt.handle)
			if tt.https {
				url = strings.Replace(url, "http:", "https:", 1)
			}
			client := newClient(t, func(cfg *Config) {
				cfg.Timeout, cfg.HeaderTimeout = cmp.Or(tt.timeout, time.Hour), time.Hour
				if tt.want == silence { // elsewhere a slow machine must not be taken for a silent receiver
					cfg.HeaderTimeout = 100 * time.Millisecond
				}
			})
			call := Call{URL: url + "canary?canary=canary", Header: http.Header{"Authorization": {"canary"}},
				Body: []byte("canary"), Rule: tt.rule}
			_, err := client.Deliver(t.Context(), someTask(), call)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if text := strings.ToLower(fmt.Sprintf("%v", err)); strings.Contains(text, "canary") {
				t.Errorf("the error shows it: %v", err)
			}
			if _, ok := errors.AsType[*processor.PermanentError](err); ok {
				t.Error("the task would fail at once")
			}
			if _, ok := errors.AsType[*processor.SnoozeError](err); ok {
				t.Error("no attempt would be spent")
			}
		})
	}
}

func TestBodyOfAnAnswerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	endless := func(conn netConn) {
		for {
			if _, err := conn.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far below the client's timeout
	defer cancel()
	client := newClient(t, func(cfg *Config) { cfg.Timeout = time.Hour })
	for status, then := range map[int]func(netConn){200: endless, 500: untilClosed} {
		url := listen(t, func(conn netConn) {
			if readRequest(conn) {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d X\r\n\r\nx", status)
				then(conn)
			}
		})
		_, err := client.Deliver(ctx, someTask(), Call{URL: url})
		if refusal, ok := errors.AsType[*StatusError](err); ok != (status == 500) || ok && refusal.Status != 500 ||
			ctx.Err() != nil {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestNameThatIsUnknownSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	client := newClient(t, func(cfg *Config) {
		cfg.Guard = newGuard(t, GuardConfig{Resolver: fakeDNS(func(string) []string { return nil })})
	})
	_, err := client.Deliver(t.Context(), someTask(), Call{URL: "https://" + freshName() + "/"})
	if err == nil || !strings.Contains(err.Error(), "its name") {
		t.Errorf("got %v", err)
	}
}

func TestStrangersCertificateIsNotAccepted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the server was called")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	_, err := newClient(t, nil).Deliver(t.Context(), someTask(), Call{URL: server.URL})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}
