package httpapi

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestAnIdempotencyKeyServesARequestOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	once := []string{"Idempotency-Key", "k"}
	first := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","body":1}`, once...)
	if again := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","body":1}`, once...); again.ID != first.ID || again.Duplicate {
		t.Errorf("repeated: %+v, want the task %v", again, first.ID)
	}
	popped := s.popOne("t", "")
	s.done("POST", "/v1/tasks/"+popped.ID.String()+"/finish", `{"token":"`+popped.Token+`"}`)
	again := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","body":1}`, once...)
	if again.ID != first.ID || again.Status != "completed" {
		t.Errorf("after its end: %+v, want the task %v, completed", again, first.ID)
	}
	s.refuses(422, wire.CodeIdempotencyMismatch, "POST", "/v1/tasks", `{"tag":"t","body":2}`, once...)
	s.refuses(422, wire.CodeIdempotencyMismatch, "POST", "/v1/tasks", `{"tag":"t","body": 1}`, once...) // another text is another request
	ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","body":2}`, "Idempotency-Key", "K")
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored, want 2", n)
	}
}

// The task of a key may be deleted while the key is remembered, where the retention is shorter than a day.
func TestAnIdempotencyKeyOutlivesItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saves := map[string]int{`{"tag":"t","key":"k"}`: http.StatusCreated, `{"tag":"t","key":"k","body":2}`: http.StatusOK}
	first := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","key":"k"}`, "Idempotency-Key", "1")
	second := ok[wire.Saved](s, http.StatusOK, "POST", "/v1/tasks", `{"tag":"t","key":"k","body":2}`, "Idempotency-Key", "2")
	if second.ID != first.ID || !second.Duplicate || second.Gone {
		t.Fatalf("saved %+v and %+v", first, second)
	}
	ok[wire.Met](s, http.StatusOK, "DELETE", "/v1/tasks/"+first.ID.String(), "")
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.dsn, "sqlite:")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "DELETE FROM delay_task_message"); err != nil {
		t.Fatal(err)
	}
	for body, status := range saves {
		key := map[int]string{http.StatusCreated: "1", http.StatusOK: "2"}[status]
		got := ok[wire.Saved](s, status, "POST", "/v1/tasks", body, "Idempotency-Key", key)
		want := wire.Saved{Task: wire.Task{ID: first.ID, Tag: "t", Key: "k"}, Gone: true, Duplicate: status == http.StatusOK}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
	text := s.send("POST", "/v1/tasks", `{"tag":"t","key":"k"}`, "Idempotency-Key", "1").text
	if strings.Contains(text, `"status"`) || s.count() != 0 {
		t.Errorf("answered %s; %d tasks are stored", text, s.count())
	}
}

func TestAnIdempotencyKeyIsNotTheKeyOfItsTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	taken := s.save(`{"tag":"t","key":"k"}`)
	for range 2 { // a duplicate is answered as one again, also when the first task is done
		again := ok[wire.Saved](s, http.StatusOK, "POST", "/v1/tasks", `{"tag":"t","key":"k","body":2}`, "Idempotency-Key", "k")
		if !again.Duplicate || again.ID != taken.ID {
			t.Errorf("got %+v, want a duplicate of %v", again, taken.ID)
		}
		if again.Status == "pending" {
			ok[wire.Met](s, http.StatusOK, "DELETE", "/v1/tags/t/keys/k", "")
		}
	}
}

func TestARefusedRequestLeavesItsIdempotencyKeyFree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	once := []string{"Idempotency-Key", "k"}
	for _, wrong := range []string{
		`{"tag":""}`, `{"tag":"t","ttr":"48h"}`, `{"tag":"t","at":"1969-01-01T00:00:00Z"}`, `{"tag":"t","priority":1000}`, `{"tag":"t","id":"1"}`,
		`{"tag":"t","body":"` + strings.Repeat("x", testBodyLimit) + `"}`,
	} {
		if got := s.send("POST", "/v1/tasks", wrong, once...); got.status != 400 && got.status != 413 {
			t.Errorf("%.60s: %d %s", wrong, got.status, got.text)
		}
	}
	ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t"}`, once...)
}

func TestFiftyAtOnceStoreOneTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mu sync.Mutex
	ids := map[wire.ID]int{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			saved := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", `{"tag":"t","delay":"1h"}`, "Idempotency-Key", "k")
			mu.Lock()
			defer mu.Unlock()
			ids[saved.ID]++
		})
	}
	all.Wait()
	if len(ids) != 1 || s.count() != 1 {
		t.Errorf("answered %v, stored %d tasks", ids, s.count())
	}
}

func TestACrashAfterTheReservationIsHealedByTheRepetition(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	body, id := `{"tag":"t","delay":"1h"}`, s.freshID()
	reserved := row.Request{Hash: sha256.Sum256([]byte("\x00k")), Content: sha256.Sum256([]byte(body)), TaskID: int64(id)}
	if _, fresh, err := s.store.ReserveRequest(t.Context(), reserved); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	for range 2 {
		if saved := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", body, "Idempotency-Key", "k"); saved.ID != id {
			t.Errorf("saved as %v, reserved was %v", saved.ID, id)
		}
	}
	// The same after a save that was never marked.
	id, reserved.Hash = s.freshID(), sha256.Sum256([]byte("\x00l"))
	reserved.TaskID = int64(id)
	if _, _, err := s.store.ReserveRequest(t.Context(), reserved); err != nil {
		t.Fatal(err)
	}
	s.save(`{"tag":"t","delay":"1h","id":"` + id.String() + `"}`)
	if saved := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", body, "Idempotency-Key", "l"); saved.ID != id {
		t.Errorf("saved as %v, reserved was %v", saved.ID, id)
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored, want 2", n)
	}
}

// reserve draws an id for a request with the Idempotency-Key k, whose task is not stored yet.
func (s *site) reserve(request string) (id int64) {
	s.t.Helper()
	id = delaytask.NewID()
	if _, _, err := s.store.ReserveRequest(s.t.Context(), row.Request{
		Hash: sha256.Sum256([]byte("\x00k")), Content: sha256.Sum256([]byte(request)), TaskID: id,
	}); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// The task is stored and not marked yet, and has been moved since.
func TestACrashBeforeTheMarkIsHealedThoughTheTaskHasChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const request = `{"tag":"t","body":1,"delay":"1h"}`
	id := s.reserve(request)
	s.save(`{"tag":"t","body":1,"delay":"1h","id":"` + wire.ID(id).String() + `"}`)
	ok[wire.Met](s, http.StatusOK, "PATCH", "/v1/tasks/"+wire.ID(id).String(), `{"delay":"2h","body":2}`)
	again := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", request, "Idempotency-Key", "k")
	if again.ID != wire.ID(id) || s.count() != 1 {
		t.Errorf("got %+v of %d tasks, want the task %d", again, s.count(), id)
	}
}

func TestIdempotencyKeysBelongToTheirCallers(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	body, once := `{"tag":"t","delay":"1h"}`, []string{"Idempotency-Key", "k"}
	a, b := s.token("a", []string{"*"}, access.Save), s.token("b", []string{"*"}, access.Save)
	first := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", body, append(a, once...)...)
	if other := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", body, append(b, once...)...); other.ID == first.ID {
		t.Error("two callers share a key")
	}
}

func TestTwoIdempotencyKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := newRequest(t, "POST", "/v1/tasks", `{"tag":"t"}`)
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	if got := s.serve(r); got.status != 400 || got.Code != wire.CodeInvalidHeader {
		t.Errorf("got %d %s", got.status, got.text)
	}
}

// forgetful stands for processes that crash between a save and its mark.
type forgetful struct{ Requests }

func (forgetful) SaveRequest(context.Context, [32]byte, int64, bool) error {
	return errors.New("crashed")
}

// A plain INSERT took the id that was drawn for the request before its task was stored, as AUTO_INCREMENT may.
func TestAStrangersRowIsNotTheTaskOfARequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Requests = forgetful{c.Requests} })
	const request = `{"tag":"t","body":1,"delay":"1h"}`
	id := s.reserve(request)
	s.save(`{"tag":"stranger","body":7,"delay":"3h","id":"` + wire.ID(id).String() + `"}`) // stands for the plain INSERT
	for _, change := range []string{"", `{"delay":"2h"}`, ""} {
		saved := ok[wire.Saved](s, http.StatusCreated, "POST", "/v1/tasks", request, "Idempotency-Key", "k")
		if saved.Tag != "t" {
			t.Errorf("the caller is told that his task is %v of tag %s", saved.ID, saved.Tag)
		}
		if change != "" {
			ok[wire.Met](s, http.StatusOK, "PATCH", "/v1/tasks/"+saved.ID.String(), change)
		}
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d tasks are stored, want the stranger's and the request's", n)
	}
}
