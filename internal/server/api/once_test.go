package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// once sends a save under an idempotency key.
func (s *site) once(status int, key, save string, header ...string) wire.Saved {
	s.TB.Helper()
	return ok[wire.Saved](s, status, "POST", "/v1/tasks", save, append([]string{"Idempotency-Key", key}, header...)...)
}

func TestAnIdempotencyKeyServesARequestOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.once(201, "k", `{"tag":"t","body":1}`)
	if again := s.once(201, "k", `{"tag":"t","body":1}`); again.ID != first.ID || again.Duplicate {
		t.Errorf("repeated: %+v, want the task %v", again, first.ID)
	}
	s.end(s.Pop("t", ""), "finish", "")
	if again := s.once(201, "k", `{"tag":"t","body":1}`); again.ID != first.ID || again.Status != "completed" {
		t.Errorf("after its end: %+v, want the task %v, completed", again, first.ID)
	}
	for _, other := range []string{`{"tag":"t","body":2}`, `{"tag":"t","body": 1}`} { // another text is another request
		s.Want(422, wire.CodeIdempotencyMismatch, "POST", "/v1/tasks", other, "Idempotency-Key", "k")
	}
	s.once(201, "K", `{"tag":"t","body":2}`)
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored, want 2", n)
	}
}

// The task of a key may be deleted while the key is stored, where the retention is shorter than a day.
func TestAnIdempotencyKeyOutlivesItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saves := map[int]string{http.StatusCreated: `{"tag":"t","key":"k"}`,
		http.StatusOK: `{"tag":"t","key":"k","body":2}`}
	first := s.once(201, "201", saves[201])
	second := s.once(200, "200", saves[200])
	if second.ID != first.ID || !second.Duplicate || second.Gone {
		t.Fatalf("saved %+v and %+v", first, second)
	}
	servertest.Exec(t, s.dsn, "DELETE FROM delay_task_message")
	for status, save := range saves {
		want := wire.Saved{Task: wire.Task{ID: first.ID, Tag: "t", Key: "k"}, Gone: true,
			Duplicate: status == http.StatusOK}
		if got := s.once(status, map[int]string{200: "200", 201: "201"}[status], save); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", save, got, want)
		}
	}
	text := s.Call("POST", "/v1/tasks", saves[201], "Idempotency-Key", "201").Text
	if strings.Contains(text, `"status"`) || s.count() != 0 {
		t.Errorf("answered %s; %d tasks are stored", text, s.count())
	}
}

func TestAnIdempotencyKeyIsNotTheKeyOfItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	taken := s.Save(`{"tag":"t","key":"k"}`)
	for range 2 { // a duplicate is answered as one again, also when the first task is done
		again := s.once(200, "k", `{"tag":"t","key":"k","body":2}`)
		if !again.Duplicate || again.ID != taken.ID {
			t.Errorf("got %+v, want a duplicate of %v", again, taken.ID)
		}
		if again.Status == "pending" {
			s.Want(200, "", "DELETE", "/v1/tags/t/keys/k", "")
		}
	}
}

func TestARescheduleIsAnsweredAsOneAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Save(`{"tag":"t","key":"k","delay":"2h"}`)
	for delay, rescheduled := range map[string]bool{"1h": true, "3h": false} {
		for range 2 {
			again := s.once(200, delay, `{"tag":"t","key":"k","delay":"`+delay+`","on_conflict":"only_earlier"}`)
			if again.Rescheduled != rescheduled || again.Duplicate == rescheduled {
				t.Errorf("%s: got %+v", delay, again)
			}
		}
	}
}

func TestARefusedRequestLeavesItsIdempotencyKeyFree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, wrong := range []string{
		`{"tag":""}`, `{"tag":"t","ttr":"48h"}`, `{"tag":"t","at":"1969-01-01T00:00:00Z"}`,
		`{"tag":"t","priority":1000}`, `{"tag":"t","id":"1"}`,
		`{"tag":"t","body":"` + strings.Repeat("x", testBodyLimit) + `"}`,
	} {
		if got := s.Call("POST", "/v1/tasks", wrong, "Idempotency-Key", "k"); got.Status != 400 && got.Status != 413 {
			t.Errorf("%.60s: %d %s", wrong, got.Status, got.Text)
		}
	}
	s.once(201, "k", `{"tag":"t"}`)
}

// A repetition tells a caller that may only save what it has sent, and not what has become of the task since.
func TestARepeatedSaveShowsWhatWasSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, save := s.token("all", "*", access.All), s.token("save", "*", access.Save)
	key := append([]string{"Idempotency-Key", "k"}, save...)
	id := wire.ID(delaytask.NewID())
	const byKey = `{"tag":"t","key":"a","body":"mine","delay":"1h","headers":{"own":"mine"}}`
	byID := `{"tag":"u","id":"` + id.String() + `","body":"mine","headers":{"own":"mine"}}`
	first := ok[wire.Saved](s, 201, "POST", "/v1/tasks", byKey, key...)
	s.Want(200, "", "PATCH", "/v1/tasks/"+first.ID.String(), `{"body":"secret"}`, all...)
	fresh := ok[wire.Saved](s, 201, "POST", "/v1/tasks", byID, save...)
	if fresh.Existing || fresh.Status != "pending" {
		t.Errorf("the first save under an id is answered %+v", fresh)
	}
	popped := ok[wire.PopReply](s, 200, "POST", "/v1/tags/u/pop?wait=20s", "", all...).Tasks[0]
	s.Want(204, "", "POST", "/v1/tasks/"+id.String()+"/fail", `{"token":"`+popped.Token+`","error":"secret"}`, all...)
	for _, c := range []struct {
		save   string
		header []string
		id     wire.ID
	}{{byKey, key, first.ID}, {byID, save, id}} {
		text := s.Want(201, "", "POST", "/v1/tasks", c.save, c.header...).Text
		var again wire.Saved
		servertest.OK(t, json.Unmarshal([]byte(text), &again))
		if !again.Existing || again.ID != c.id || string(again.Body.Body) != `"mine"` ||
			again.Headers["own"] != "mine" || again.Status != "" || again.Executor != "" ||
			strings.Contains(text, "secret") {
			t.Errorf("%s is answered %s", c.save, text)
		}
	}
	if again := ok[wire.Saved](s, 201, "POST", "/v1/tasks", byID, all...); !again.Existing || again.Error != "secret" {
		t.Errorf("a reader gets %+v", again)
	}
}

func TestFiftyAtOnceStoreOneTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { s.once(201, "k", `{"tag":"t","delay":"1h"}`) })
	}
	all.Wait()
	if n := s.count(); n != 1 {
		t.Errorf("%d tasks are stored", n)
	}
}

func TestIdempotencyKeysBelongToTheirCallers(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	a, b := s.token("a", "*", access.Save), s.token("b", "*", access.Save)
	first := s.once(201, "k", `{"tag":"t","delay":"1h"}`, a...)
	if other := s.once(201, "k", `{"tag":"t","delay":"1h"}`, b...); other.ID == first.ID {
		t.Error("two callers share a key")
	}
}

// reserve draws an id for a request with the Idempotency-Key k, as a process that then crashes.
func (s *site) reserve(request string) wire.ID {
	s.TB.Helper()
	id := delaytask.NewID()
	if _, fresh, err := s.store.ReserveRequest(s.TB.Context(), row.Request{
		Hash: sha256.Sum256([]byte("\x00k")), Content: sha256.Sum256([]byte(request)), TaskID: id,
	}); err != nil || !fresh {
		s.TB.Fatal(fresh, err)
	}
	return wire.ID(id)
}

func TestACrashIsHealedByTheRepetition(t *testing.T) {
	t.Parallel()
	const request = `{"tag":"t","body":1,"delay":"1h"}`
	f := func(name string, before func(s *site, id wire.ID)) {
		t.Helper()
		s := newSite(t)
		id := s.reserve(request)
		before(s, id)
		for range 2 {
			if saved := s.once(201, "k", request); saved.ID != id {
				t.Errorf("%s: saved as %v, reserved was %v", name, saved.ID, id)
			}
		}
		if n := s.count(); n != 1 {
			t.Errorf("%s: %d tasks are stored", name, n)
		}
	}
	saved := func(s *site, id wire.ID) { s.Save(`{"tag":"t","body":1,"delay":"1h","id":"` + id.String() + `"}`) }
	f("after the reservation", func(*site, wire.ID) {})
	f("before the mark", saved)
	f("before the mark of a task that was changed since", func(s *site, id wire.ID) {
		saved(s, id)
		s.Want(200, "", "PATCH", "/v1/tasks/"+id.String(), `{"delay":"2h","body":2}`)
	})
}

// forgetful simulates processes that crash between a save and its mark.
type forgetful struct{ Requests }

func (forgetful) SaveRequest(context.Context, row.Request) error {
	return errors.New("crashed")
}

// A plain INSERT took the id of the request before its task was stored, as AUTO_INCREMENT may.
func TestAForeignRowIsNotTheTaskOfARequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Requests = forgetful{c.Requests} })
	const request = `{"tag":"t","body":1,"delay":"1h"}`
	id := s.reserve(request)
	s.Save(`{"tag":"stranger","body":7,"delay":"3h","id":"` + id.String() + `"}`) // in place of a plain INSERT
	for _, change := range []string{"", `{"delay":"2h"}`, ""} {
		saved := s.once(201, "k", request)
		if saved.Tag != "t" {
			t.Errorf("the answer names task %v of tag %s", saved.ID, saved.Tag)
		}
		if change != "" {
			s.Want(200, "", "PATCH", "/v1/tasks/"+saved.ID.String(), change)
		}
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored, want the stranger's and the request's", n)
	}
}
