package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
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

func TestPagesEndAt16MiBAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var want []wire.ID
	put := func(bytes int) {
		id, err := s.scheduler.SaveDelayTask(t.Context(), "t", "x", time.Hour)
		servertest.OK(t, err)
		servertest.Exec(t, s.dsn, "UPDATE delay_task_message SET message_body = ? WHERE id = ?",
			strings.Repeat("b", bytes), id)
		want = append(want, wire.ID(id))
	}
	for range 5 {
		put(6 << 20)
	}
	put(20 << 20)
	put(1)
	var seen []wire.ID
	var pages []int
	for cursor := ""; len(pages) == 0 || cursor != ""; {
		page := list(s, "tag=t&order=due&bodies=true&cursor="+cursor)
		for _, task := range page.Tasks {
			seen = append(seen, task.ID)
			if task.BodyText == nil {
				t.Fatalf("task %v has no body", task.ID)
			}
		}
		pages, cursor = append(pages, len(page.Tasks)), page.Next
	}
	if !slices.Equal(seen, want) || !slices.Equal(pages, []int{2, 2, 1, 1, 1}) {
		t.Errorf("pages of %v hold %v, want %v", pages, seen, want)
	}
	if page := list(s, "tag=t"); len(page.Tasks) != 7 || page.Next != "" {
		t.Errorf("without bodies: %d tasks, next %q", len(page.Tasks), page.Next)
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
