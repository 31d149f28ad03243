package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

// batchOf is a batch of one task that takes so many bytes.
func batchOf(size int) string {
	return `[{"tag":"t","delay":"1h"}` + strings.Repeat(" ", size) + `]`
}

func TestLargeRequestsWaitForRoomAndSmallOnesDoNot(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Room, c.RoomWait = mostBatchBytes, 50*time.Millisecond })
	begin := func() (rest io.WriteCloser, answered chan reply) {
		pipe, w := io.Pipe()
		r := httptest.NewRequestWithContext(t.Context(), "POST", batchPath, pipe)
		r.Host = "localhost"
		r.Header.Set("Content-Type", mediaJSON)
		answered = make(chan reply, 1)
		go func() { answered <- s.serve(r) }()
		if _, err := io.WriteString(w, batchOf(smallBody)); err != nil { // it was read past a small body, so it has room
			t.Error(err)
		}
		return w, answered
	}
	rest, answered := begin()

	p := s.send("POST", batchPath, batchOf(2*smallBody))
	if p.status != http.StatusServiceUnavailable || p.Code != wire.CodeOverloaded || p.header.Get("Retry-After") == "" {
		t.Errorf("a second large request: %d %s", p.status, p.text)
	}
	s.save(`{"tag":"t","delay":"1h"}`)
	ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, batchOf(smallBody/2))
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored", n)
	}

	if err := rest.Close(); err != nil {
		t.Error(err)
	}
	if got := <-answered; got.status != http.StatusOK {
		t.Errorf("the one that had room: %d %s", got.status, got.text)
	}
	ok[wire.BatchSaved](s, http.StatusOK, "POST", batchPath, batchOf(2*smallBody))
	if !s.api.room.TryAcquire(mostBatchBytes) {
		t.Error("not all of the room was given back")
	}
}
