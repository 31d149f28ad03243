package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func list(s *site, query string) wire.Page {
	s.TB.Helper()
	return ok[wire.Page](s, http.StatusOK, "GET", "/v1/tasks?"+query, "")
}

func TestAFilterOrCursorThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		s.Save(`{"tag":"t","delay":"1h"}`)
	}
	s.Want(400, wire.CodeInvalidOption, "GET", "/v1/tasks?tag=t&late_by=0", "")
	cursor := list(s, "tag=t&limit=1").Next
	if got := list(s, "tag=t&limit=2&bodies=true&cursor="+cursor); len(got.Tasks) != 2 {
		t.Errorf("another size of pages: %d tasks", len(got.Tasks))
	}
	for _, query := range []string{
		"", "tag=u&", "tag=t&status=pending&", "tag=t&key=k&", "tag=t&key=k&app=a&", "tag=t&order=due&",
	} {
		s.Want(400, wire.CodeInvalidCursor, "GET", "/v1/tasks?"+query+"cursor="+cursor, "")
	}
}

const register = `{"app":"shop","address":"http://127.0.0.1:9/hook","tags":["a","b"],"ttl":"1m"}`

func TestAReceiverIsRegisteredAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	receiver := ok[wire.Receiver](s, http.StatusCreated, "POST", "/v1/receivers", register)
	if receiver.App != "shop" || len(receiver.Tags) != 2 || receiver.TTLMS != 60_000 || receiver.Signed {
		t.Errorf("registered %+v", receiver)
	}
	path := "/v1/receivers/" + receiver.ID.String()
	if got := ok[wire.Receiver](s, http.StatusOK, "GET", path, ""); got.ID != receiver.ID {
		t.Errorf("got %+v", got)
	}
	got := ok[wire.Receiver](s, http.StatusOK, "POST", path+"/heartbeat", "")
	if got.Expires.Std().Before(receiver.Expires.Std()) {
		t.Errorf("a heartbeat moved the end from %v to %v", receiver.Expires, got.Expires)
	}
	if all := ok[wire.ReceiverList](s, http.StatusOK, "GET", "/v1/receivers", ""); len(all.Receivers) != 1 {
		t.Errorf("listed %+v", all)
	}
	s.Want(204, "", "DELETE", path, "")
	s.Want(404, wire.CodeNotFound, "GET", path, "")
	s.Want(404, wire.CodeNotFound, "DELETE", path, "")
	s.Want(404, wire.CodeNotFound, "POST", path+"/heartbeat", "")
	if all := ok[wire.ReceiverList](s, http.StatusOK, "GET", "/v1/receivers", ""); all.Receivers == nil ||
		len(all.Receivers) != 0 {
		t.Errorf("listed %+v", all)
	}
}

func TestAReceiverThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	f := func(status int, code, address, members string) {
		t.Helper()
		p := s.Want(status, code, "POST", "/v1/receivers", `{"app":"shop","address":"`+address+`",`+members+`}`)
		if strings.Contains(p.Text, "s3cr3t") {
			t.Errorf("the answer holds the password: %s", p.Text)
		}
	}
	f(400, wire.CodeInvalidAddress, "", `"tags":["t"]`)
	f(400, wire.CodeInvalidAddress, "https://user:s3cr3t@example.com/", `"tags":["t"]`)
	f(422, wire.CodeBlockedAddress, "http://169.254.169.254/latest?s3cr3t", `"tags":["t"]`)
	f(409, wire.CodeConflict, "http://127.0.0.1:9/", `"tags":["http"]`)
	f(422, wire.CodeSecretsImpossible, "http://127.0.0.1:9/",
		`"tags":["t"],"secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="`)
	if all := ok[wire.ReceiverList](s, http.StatusOK, "GET", "/v1/receivers", ""); len(all.Receivers) != 0 {
		t.Errorf("listed %+v", all)
	}
}
