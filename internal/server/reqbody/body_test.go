package reqbody

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// covered hides the connection from the standard library, as a middleware does.
type covered struct{ http.ResponseWriter }

func (c covered) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// The client of each of these sends no more. [servertest.Speak] wants the server to hang up.
func TestABodyThatIsNotReadIsAnsweredAtOnceAndEndsItsConnection(t *testing.T) {
	t.Parallel()
	f := func(wait time.Duration, sent, want string) {
		t.Helper()
		url := servertest.Listen(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := Body(covered{w}, r, 10, wait)
			status := http.StatusOK
			if unreadable, ok := errors.AsType[*BodyError](err); ok {
				status = unreadable.Status
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		})
		answer := servertest.Speak(t, url, "POST / HTTP/1.1\r\nHost: localhost\r\n"+sent, false)
		if !strings.HasPrefix(answer, "HTTP/1.1 "+want) || !strings.Contains(answer, "Connection: close") {
			t.Errorf("%.60q: %s, want %s", sent, answer, want)
		}
	}
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	f(time.Hour, "Connection: close\r\nContent-Length: 10\r\n\r\n0123456789", "200")
	f(time.Hour, "Content-Length: 11\r\n\r\n01234567890", "413")
	f(time.Hour, chunked+"100\r\n"+strings.Repeat("x", 0x100)+"\r\n", "413")
	f(time.Hour, chunked+"zz\r\n", "400")
	f(50*time.Millisecond, "Content-Length: 10\r\n\r\n012", "408")
	f(50*time.Millisecond, chunked+"3\r\n012\r\n", "408")
}

func TestATaskWhosePopIsGoneIsHandedOutAgainAtNoCost(t *testing.T) {
	t.Parallel()
	s := servertest.Open(t, dbtest.New(t, dbtest.SQLite).DSN, scheduler.Config{})
	servertest.OK(t, s.Start(t.Context()))
	if _, err := s.SaveDelayTask(t.Context(), "t", "x", 0); err != nil {
		t.Fatal(err)
	}
	pop := func() []*delaytask.Popped {
		t.Helper()
		popped, err := s.Pop(t.Context(), "t", delaytask.PopTTR(time.Hour), delaytask.PopWait(30*time.Second))
		if err != nil || len(popped) != 1 {
			t.Fatalf("popped %v, %v", popped, err)
		}
		return popped
	}
	first := pop()
	Unclaim(slog.New(slog.DiscardHandler), s, first)
	Unclaim(slog.New(slog.DiscardHandler), s, first) // a lease that is lost is only logged
	if task, err := s.Get(t.Context(), delaytask.ID(first[0].ID)); err != nil || !task.Started.IsZero() ||
		len(task.Errors) != 0 {
		t.Errorf("the caller did not get it, and it is %+v, %v", task, err)
	}
	if again := pop(); again[0].ID != first[0].ID || again[0].Attempt != 1 {
		t.Errorf("popped %+v", again[0])
	}
}
