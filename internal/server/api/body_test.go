package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// A server waits for the rest of a body before it answers, even where the answer does not depend on it. The client of
// each case sends no more; [servertest.Speak] requires that the server hangs up.
func TestABodyThatNeverComesHoldsNoConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.api.bodyWait = 50 * time.Millisecond
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

// batchOf is a batch of one task that takes so many bytes.
func batchOf(size int) string {
	return `[{"tag":"t","delay":"1h"}` + strings.Repeat(" ", size) + `]`
}

func TestLargeRequestsWaitForRoomAndSmallOnesDoNot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.api.rooms.Large = reqbody.NewRoom(mostBatchBytes, mostBatchBytes)
	body, rest := io.Pipe()
	answered := make(chan servertest.Answer, 1)
	go func() {
		r, err := s.Request("POST", batchPath, body)
		if err != nil {
			t.Error(err)
		}
		got, err := s.Send(r)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	// The request has room: more than a small body of it has been read.
	if _, err := io.WriteString(rest, batchOf(reqbody.SmallBody)); err != nil {
		t.Error(err)
	}

	s.api.rooms.Wait = 50 * time.Millisecond
	if p := s.Want(503, wire.CodeOverloaded, "POST", batchPath,
		batchOf(2*reqbody.SmallBody)); p.Header.Get("Retry-After") == "" {
		t.Error("a second large request gets no Retry-After")
	}
	s.Save(`{"tag":"t","delay":"1h"}`)
	s.Want(200, "", "POST", batchPath, batchOf(reqbody.SmallBody/2))
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored", n)
	}

	if err := rest.Close(); err != nil {
		t.Error(err)
	}
	if got := <-answered; got.Status != http.StatusOK {
		t.Errorf("the one that had room: %d %s", got.Status, got.Text)
	}
	s.Want(200, "", "POST", batchPath, batchOf(2*reqbody.SmallBody))
	if s.api.rooms.Large.Free() != mostBatchBytes {
		t.Error("not all of the room was given back")
	}
}

func TestManyHeadersWaitForRoomForWhatIsMadeOfThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const room = 1 << 20
	decoded := reqbody.NewRoom(room, room)
	s.api.rooms.Decoded, s.api.rooms.Wait = decoded, 50*time.Millisecond
	held, err := decoded.Enter(t.Context(), "another", room, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{}
	for n := range 300 {
		headers[strconv.Itoa(n)] = ""
	}
	many, err := json.Marshal(map[string]any{"tag": "t", "delay": "1h", "headers": headers})
	if err != nil {
		t.Fatal(err)
	}
	s.Want(503, wire.CodeOverloaded, "POST", "/v1/tasks", string(many))
	s.Save(`{"tag":"t","delay":"1h","headers":{"few":""}}`)
	held.Leave()
	s.Save(string(many))
	if s.api.rooms.Decoded.Free() != room {
		t.Error("not all of the room was given back")
	}
}

// stalled is a client that reads nothing of its answer until it has gone.
type stalled struct {
	*httptest.ResponseRecorder
	begun, gone chan struct{}
	once        sync.Once
}

func (s *stalled) Write([]byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.gone
	return 0, os.ErrDeadlineExceeded
}

func TestPagesOfSlowClientsShareTheirRoomAndGoneOnesAreNoError(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const room = pageBytes + testBodyLimit
	s.api.rooms.Answers, s.api.rooms.Wait = reqbody.NewRoom(room, room), 50*time.Millisecond
	s.Save(`{"tag":"t","delay":"1h","body":"` + strings.Repeat("b", testBodyLimit-2) + `"}`)
	gone, served := make(chan struct{}), make(chan struct{})
	slow := func() {
		w := &stalled{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), gone: gone}
		go func() {
			defer func() { served <- struct{}{} }()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/tasks?bodies=true", nil)
			r.Host = "localhost"
			s.api.ServeHTTP(w, r)
		}()
		<-w.begun
	}
	slow()
	slow() // the first one holds no more than its page needs
	s.Want(503, wire.CodeOverloaded, "GET", "/v1/tasks?bodies=true", "")
	if page := list(s, "tag=t"); len(page.Tasks) != 1 {
		t.Errorf("without bodies, meanwhile: %d tasks", len(page.Tasks))
	}
	close(gone)
	<-served
	<-served
	if page := list(s, "bodies=true"); len(page.Tasks) != 1 {
		t.Errorf("after they have gone: %d tasks", len(page.Tasks))
	}
	if s.api.rooms.Answers.Free() != room {
		t.Error("not all of the room was given back")
	}
	if strings.Contains(s.logged.String(), "ERROR") {
		t.Errorf("logged %s", s.logged)
	}
}
