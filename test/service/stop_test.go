package service

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/scheduler"
)

// calls saves a task, and returns when its call runs. The call is answered when the test allows it.
func (s *server) calls() (saved wire.Saved, letGo func()) {
	s.TB.Helper()
	came, hold := make(chan struct{}, 100), make(chan struct{})
	url := servertest.Listen(s.TB, func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	saved = s.Save(`{"tag":"http","body":{"url":"` + url + `"}}`)
	servertest.Receive(s.TB, came, "the call runs")
	return saved, func() { close(hold) }
}

// stopping sends SIGTERM, and waits until the server logs that it stops.
func (s *server) stopping() {
	s.TB.Helper()
	s.Signal(syscall.SIGTERM)
	s.becomes(503, "GET", "/readyz")
	s.Want(503, wire.CodeStopping, "GET", "/readyz", "")
}

// stored reads a task from the table when no server is left.
func stored(t *testing.T, db dbtest.Database, id wire.ID) delaytask.TaskRow {
	t.Helper()
	task, err := servertest.Open(t, db.DSN, scheduler.Config{}).Get(t.Context(), delaytask.ID(int64(id)))
	servertest.OK(t, err)
	return task
}

func TestAStopAnswersWaitingPopsAndEarlierRequests(t *testing.T) {
	servertest.Each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db)
		polls := s.polls("a.")
		// Half a request is there when the server is told to stop.
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		servertest.OK(t, err)
		defer func() { _ = conn.Close() }()
		const body = `{"tag":"saved","key":"late"}`
		write := func(text string) {
			t.Helper()
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		// The request is in flight when the server has asked for its body.
		write(fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("the server said %q, %v", line, err)
		}
		s.stopping()
		for tag, poll := range polls {
			a := servertest.Receive(t, poll, "the pop is answered")
			if a.Status != 204 && (a.Status != 200 || !strings.HasPrefix(a.Text,
				`{"success":true,"error":"","id":""`)) {
				t.Errorf("the pop of %s is answered %d %s", tag, a.Status, a.Text)
			}
		}
		s.Want(200, "", "GET", "/healthz", "")
		s.Want(503, wire.CodeStopping, "POST", "/v1/tasks", `{"tag":"t"}`)
		s.Want(503, wire.CodeStopping, "POST", "/v1/tags/t/pop?wait=50s", "")
		write(body)
		if _, err := answers.ReadString('\n'); err != nil { // which ends the 100
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != 201 {
			t.Fatalf("the request that was inside: %+v, %v", res, err)
		}
		_ = res.Body.Close()
		s.EndsWell()
		serve(t, db).Want(200, "", "GET", "/v1/tags/saved/keys/late", "")
	})
}

func TestAStopLetsRunningCallsEndAndSendsTheirSpans(t *testing.T) {
	t.Parallel()
	db, c := dbtest.New(t, dbtest.SQLite), newCollector(t)
	s := serve(t, db, tracedTo(c.url, "OTEL_BSP_SCHEDULE_DELAY=3600000")...)
	saved, letGo := s.calls()
	s.stopping()
	letGo()
	s.EndsWell()
	if task := stored(t, db, saved.ID); task.Status != delaytask.Completed {
		t.Errorf("the task is %s", task.Status)
	}
	for _, name := range []string{"POST /v1/tasks", "send http", "process http", "POST"} {
		c.one(name)
	}
}

func TestAStopReleasesWhatRunsLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db, "DELAYTASK_STOP_GRACE=200ms")
	saved, _ := s.calls()
	s.Stops()
	if task := stored(t, db, saved.ID); task.Status != delaytask.Pending || task.Attempt != 0 || len(task.Errors) != 0 {
		t.Errorf("the task is %s at attempt %d with %v", task.Status, task.Attempt, task.Errors)
	}
}

func TestASecondSignalKills(t *testing.T) {
	t.Parallel()
	s := serve(t, dbtest.New(t, dbtest.SQLite))
	s.calls()
	s.stopping()
	s.Signal(syscall.SIGTERM)
	if code := s.End(); code != -1 {
		t.Errorf("exit code %d, want an end by the signal", code)
	}
}
