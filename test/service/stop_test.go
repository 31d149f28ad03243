package service

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/wire"
)

// holding is a receiver that answers when it is let go.
func holding(t *testing.T) (url string, called <-chan struct{}, letGo func()) {
	t.Helper()
	came, hold := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, came, func() { close(hold) }
}

// stopping waits until the server says that it stops.
func (s *server) stopping() {
	s.t.Helper()
	eventually(s.t, "the server says that it is stopping", func() bool {
		a := s.call("GET", "/readyz", "")
		if a.status == 503 {
			a.wants(s.t, 503, wire.CodeStopping)
		}
		return a.status == 503
	})
}

// stored reads a task from the table when no server is left.
func stored(t *testing.T, db dbtest.Database, id wire.ID) delaytask.Task {
	t.Helper()
	s, err := delaytask.Open(t.Context(), db.DSN, delaytask.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(t.Context()) }()
	task, err := s.Get(t.Context(), delaytask.ID(int64(id)))
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestAStopAnswersThoseWhoWaitAndThoseWhoCameBefore(t *testing.T) {
	each(t, func(t *testing.T, db dbtest.Database) {
		s := serve(t, db)
		waiting := make(chan answer, 1)
		go func() {
			a, err := s.try("POST", "/v1/tags/t/pop?wait=50s", "")
			if err != nil {
				t.Error(err)
			}
			waiting <- a
		}()
		s.awaits("t")
		// Half a request is there when the server is told to stop.
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		const body = `{"tag":"saved","key":"late"}`
		write := func(text string) {
			t.Helper()
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		// It is inside when the server has asked for its body.
		write(fmt.Sprintf("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("the server said %q, %v", line, err)
		}
		s.signal(syscall.SIGTERM)
		s.stopping()
		receive(t, waiting, "the pop is answered").wants(t, 204, "")
		s.call("GET", "/healthz", "").wants(t, 200, "")
		s.call("POST", "/v1/tasks", `{"tag":"t"}`).wants(t, 503, wire.CodeStopping)
		s.call("POST", "/v1/tags/t/pop?wait=50s", "").wants(t, 503, wire.CodeStopping)
		write(body)
		if _, err := answers.ReadString('\n'); err != nil { // which ends the 100
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != 201 {
			t.Fatalf("the request that was inside: %+v, %v", res, err)
		}
		_ = res.Body.Close()
		if code := s.end(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		again := serve(t, db)
		again.call("GET", "/v1/tags/saved/keys/late", "").wants(t, 200, "")
	})
}

func TestAStopLetsRunningCallsEnd(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db)
	url, called, letGo := holding(t)
	saved := s.save(`{"tag":"http","body":{"url":"` + url + `"}}`)
	receive(t, called, "the call runs")
	s.signal(syscall.SIGTERM)
	s.stopping()
	letGo()
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if task := stored(t, db, saved.ID); task.Status != delaytask.Completed {
		t.Errorf("the task is %s", task.Status)
	}
}

func TestAStopReleasesWhatRunsLongerThanTheGrace(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	s := serve(t, db, "DELAYTASK_STOP_GRACE=200ms")
	url, called, _ := holding(t)
	saved := s.save(`{"tag":"http","body":{"url":"` + url + `"}}`)
	receive(t, called, "the call runs")
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if task := stored(t, db, saved.ID); task.Status != delaytask.Pending || task.Attempt != 0 || len(task.Errors) != 0 {
		t.Errorf("the task is %s at attempt %d with %v", task.Status, task.Attempt, task.Errors)
	}
}

func TestASecondSignalKills(t *testing.T) {
	t.Parallel()
	s := serve(t, dbtest.New(t, dbtest.SQLite))
	url, called, _ := holding(t)
	s.save(`{"tag":"http","body":{"url":"` + url + `"}}`)
	receive(t, called, "the call runs")
	s.signal(syscall.SIGTERM)
	s.stopping()
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != -1 {
		t.Errorf("exit code %d, want an end by the signal", code)
	}
}
