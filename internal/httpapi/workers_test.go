package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
)

const register = `{"app":"shop","address":"http://127.0.0.1:9/hook","tags":["a","b"],"ttl":"1m"}`

func TestAWorkerIsRegisteredAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	worker := ok[wire.Worker](s, http.StatusCreated, "POST", "/v1/workers", register)
	if worker.App != "shop" || len(worker.Tags) != 2 || worker.TTLMS != 60_000 || worker.Signed {
		t.Errorf("registered %+v", worker)
	}
	if again := ok[wire.Worker](s, http.StatusCreated, "POST", "/v1/workers", register); again.ID != worker.ID {
		t.Errorf("registered again as %v, was %v", again.ID, worker.ID)
	}
	path := "/v1/workers/" + worker.ID.String()
	if got := ok[wire.Worker](s, http.StatusOK, "GET", path, ""); got.ID != worker.ID {
		t.Errorf("got %+v", got)
	}
	if got := ok[wire.Worker](s, http.StatusOK, "POST", path+"/heartbeat", ""); got.Expires.Std().Before(worker.Expires.Std()) {
		t.Errorf("a heartbeat moved the end from %v to %v", worker.Expires, got.Expires)
	}
	if all := ok[wire.WorkerList](s, http.StatusOK, "GET", "/v1/workers", ""); len(all.Workers) != 1 {
		t.Errorf("listed %+v", all)
	}
	s.done("DELETE", path, "")
	for _, method := range []string{"GET", "DELETE"} {
		s.refuses(404, wire.CodeNotFound, method, path, "")
	}
	s.refuses(404, wire.CodeNotFound, "POST", path+"/heartbeat", "")
	if all := ok[wire.WorkerList](s, http.StatusOK, "GET", "/v1/workers", ""); all.Workers == nil || len(all.Workers) != 0 {
		t.Errorf("listed %+v", all)
	}
}

func TestARegistrationIsNotTakenOver(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	all, other := s.token("all", []string{"*"}, access.Register), s.token("other", []string{"mine"}, access.Register)
	worker := ok[wire.Worker](s, http.StatusCreated, "POST", "/v1/workers", register, all...)
	s.refuses(403, wire.CodeForbidden, "POST", "/v1/workers", strings.Replace(register, `"a","b"`, `"mine"`, 1), other...)
	got := ok[wire.Worker](s, http.StatusOK, "GET", "/v1/workers/"+worker.ID.String(), "", all...)
	if strings.Join(got.Tags, " ") != "a b" {
		t.Errorf("the worker takes %q by now", got.Tags)
	}
	db, _, err := store.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE delay_task_worker SET expire_time = create_time"); err != nil {
		t.Fatal(err)
	}
	s.refuses(403, wire.CodeForbidden, "POST", "/v1/workers", strings.Replace(register, `"a","b"`, `"mine"`, 1), other...)
	ok[wire.Worker](s, http.StatusCreated, "POST", "/v1/workers", strings.Replace(register, `"a","b"`, `"mine"`, 1), all...)
}

func TestAnAddressThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := func(address string) {
		t.Helper()
		got := s.send("POST", "/v1/workers", `{"app":"shop","tags":["t"],"address":"`+address+`"}`)
		if got.Code != wire.CodeInvalidAddress && got.Code != wire.CodeBlockedAddress {
			t.Errorf("%s: %d %s", address, got.status, got.text)
		}
		if strings.Contains(got.text, "s3cr3t") {
			t.Errorf("%s: the answer holds the password: %s", address, got.text)
		}
	}
	for _, address := range []string{
		"", "file:///etc/passwd", "gopher://x", "http://", "https://user:s3cr3t@example.com/", "https://example.com/#f",
		"https://a b.example/", "https://ex\u0430mple.com/", "http://10.0.0.1/", "http://169.254.169.254/latest", "http://[fd00:ec2::254]/",
		"https://example.com/" + strings.Repeat("x", 3000), "//example.com", "https:example.com",
	} {
		f(address)
	}
	s.refuses(409, wire.CodeConflict, "POST", "/v1/workers", `{"app":"shop","address":"http://127.0.0.1:9/","tags":["http"]}`)
	s.refuses(422, wire.CodeSecretsImpossible, "POST", "/v1/workers",
		`{"app":"shop","address":"http://127.0.0.1:9/","tags":["t"],"secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`)
	if all := ok[wire.WorkerList](s, http.StatusOK, "GET", "/v1/workers", ""); len(all.Workers) != 0 {
		t.Errorf("listed %+v", all)
	}
}

func TestAWorkerIsItsTagsCallersOnly(t *testing.T) {
	t.Parallel()
	s := newGuarded(t)
	both, one := s.token("both", []string{"*"}, access.Register), s.token("one", []string{"a"}, access.Register)
	worker := ok[wire.Worker](s, http.StatusCreated, "POST", "/v1/workers", register, both...)
	s.refuses(403, wire.CodeForbidden, "POST", "/v1/workers", register, one...)
	path := "/v1/workers/" + worker.ID.String()
	s.refuses(404, wire.CodeNotFound, "GET", path, "", one...)
	s.refuses(404, wire.CodeNotFound, "DELETE", path, "", one...)
	s.refuses(404, wire.CodeNotFound, "POST", path+"/heartbeat", "", one...)
	if all := ok[wire.WorkerList](s, http.StatusOK, "GET", "/v1/workers", "", one...); len(all.Workers) != 0 {
		t.Errorf("listed %+v", all)
	}
	s.done("DELETE", path, "", both...)
}
