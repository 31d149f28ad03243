package api

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
)

const hidden = "canary-Qx7"

const secretMembers = `"body":{"n":12345678901234567890,"password":"` + hidden + `"},` +
	`"headers":{"x-api-key":"` + hidden + `"}`

// gate asks for tokens once it is told to.
type gate struct {
	*access.Tokens
	asks *atomic.Bool
}

func (g gate) Asked(context.Context) (bool, error) { return g.asks.Load(), nil }

// secretive makes a site with a failed task, a pending one and a schedule whose texts hold secrets. It asks for tokens.
func secretive(t *testing.T) (s *site, failed wire.ID) {
	t.Helper()
	var asks atomic.Bool
	s = newSite(t, func(c *Config) { c.Tokens = gate{access.NewTokens(c.Requests.(*sqlstore.Store)), &asks} })
	failed = s.Save(`{"tag":"t","key":"k",` + secretMembers + `}`).ID
	popped := s.Pop("t", "")
	if !strings.Contains(string(popped.Body.Body), hidden) || popped.Headers["x-api-key"] != hidden {
		t.Errorf("a pop has %s, %v", popped.Body.Body, popped.Headers)
	}
	s.end(popped, "fail", `,"error":"dial: token=`+hidden+`","permanent":true`)
	s.Save(`{"tag":"t","key":"k","delay":"1h",` + secretMembers + `}`)
	s.Want(200, "", "PUT", "/v1/schedules/s", `{"lines":["@daily"],"tag":"t",`+secretMembers+`}`)
	s.Want(204, "", "POST", "/v1/schedules/s/pause", `{"reason":"password: `+hidden+`"}`)
	asks.Store(true)
	return s, failed
}

func TestReadsHideSecrets(t *testing.T) {
	t.Parallel()
	s, failed := secretive(t)
	reader, bodies := s.token("reader", "t", access.Read), s.token("bodies", "t", access.Read, access.Bodies)
	all := s.token("all", "*", access.All)
	id := "/v1/tasks/" + failed.String()
	for path, secrets := range map[string]bool{
		id + "?": true, id + "?wait=1ms&": true, id + "/explain?": true, "/v1/tags/t/keys/k?": true,
		"/v1/tags/t/keys/k/explain?": true, "/v1/tasks?tag=t&bodies=true&": true, "/v1/failures?tag=t&": true,
		"/v1/schedules?bodies=true&": true, "/v1/schedules/s?": true, "/v1/schedules/s/explain?": true,
		"/v1/schedules/s/ticks?": false,
	} {
		for _, token := range [][]string{reader, bodies, all} {
			got := s.Call("GET", path+"raw=false", "", token...)
			if got.Status != 200 || strings.Contains(got.Text, hidden) ||
				strings.Contains(got.Text, redact.Mask) != secrets {
				t.Errorf("%s: %d %s", path, got.Status, got.Text)
			}
		}
		s.Want(403, wire.CodeForbidden, "GET", path+"raw=true", "", reader...)
		got := s.Call("GET", path+"raw=true", "", bodies...)
		if got.Status != 200 || strings.Contains(got.Text, hidden) != secrets ||
			strings.Contains(got.Text, "redacted") {
			t.Errorf("%s raw: %d %s", path, got.Status, got.Text)
		}
	}
	task := ok[wire.Task](s, 200, "GET", id, "", bodies...)
	if want := `{"n":12345678901234567890,"password":"` + redact.Mask + `"}`; string(task.Body.Body) != want ||
		!task.Redacted || task.Headers["x-api-key"] != redact.Mask || task.Error != "dial: token="+redact.Mask {
		t.Errorf("got %+v", task)
	}
	if o := s.Want(200, "", "GET", "/v1/overview", "", all...); strings.Contains(o.Text, hidden) ||
		!strings.Contains(o.Text, redact.Mask) {
		t.Errorf("the overview shows %s", o.Text)
	}
	if log := s.Want(200, "", "GET", "/v1/audit", "", all...); strings.Contains(log.Text, hidden) {
		t.Errorf("the audit log shows %s", log.Text)
	}
	again := ok[wire.Saved](s, 200, "POST", "/v1/tasks", `{"tag":"t","key":"k"}`, all...)
	if !again.Duplicate || !again.Redacted || strings.Contains(string(again.Body.Body), hidden) {
		t.Errorf("a save that meets a task of another caller shows %s", again.Body.Body)
	}
}

// TestABodyAloneIsItsBytes also wants a browser that opens the address to run nothing of them.
func TestABodyAloneIsItsBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, guarded)
	all, bodies := s.token("all", "*", access.All), s.token("bodies", "t", access.Read, access.Bodies)
	reader, blind := s.token("reader", "t", access.Read), s.token("blind", "t", access.Bodies)
	foreign := s.token("foreign", "u", access.Read, access.Bodies)
	const page = "<script>password=" + hidden + "</script>\x00\r\n\x7f"
	save := `{"tag":"t","key":"k","delay":"1h","body_text":"` + strings.NewReplacer("\x00", `\u0000`, "\r\n", `\r\n`,
		"\x7f", `\u007f`).Replace(page) + `"}`
	id := ok[wire.Saved](s, 201, "POST", "/v1/tasks", save, all...).ID
	for _, path := range []string{"/v1/tasks/" + id.String() + "/body", "/v1/tags/t/keys/k/body"} {
		masked := s.Want(200, "", "GET", path, "", bodies...)
		stored := s.Want(200, "", "GET", path+"?raw=true", "", bodies...)
		if stored.Text != page || strings.Contains(masked.Text, hidden) || !strings.Contains(masked.Text, redact.Mask) {
			t.Errorf("%s: %q, raw %q", path, masked.Text, stored.Text)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff",
			"Content-Disposition":     `attachment; filename="task-` + id.String() + `.body"`,
			"Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "no-store",
		} {
			if masked.Header.Get(name) != want || stored.Header.Get(name) != want {
				t.Errorf("%s: %s is %q and %q", path, name, masked.Header.Get(name), stored.Header.Get(name))
			}
		}
		if m, r := masked.Header.Get("Delaytask-Redacted"), stored.Header.Get("Delaytask-Redacted"); m != "true" ||
			r != "false" {
			t.Errorf("%s: redacted is %q, raw %q", path, m, r)
		}
		s.Want(403, wire.CodeForbidden, "GET", path, "", reader...)
		s.Want(403, wire.CodeForbidden, "GET", path, "", blind...)
		s.Want(400, wire.CodeInvalidParameter, "GET", path+"?raw=perhaps", "", bodies...)
	}
	s.Want(404, wire.CodeNotFound, "GET", "/v1/tasks/"+id.String()+"/body", "", foreign...)
	s.Want(403, wire.CodeForbidden, "GET", "/v1/tags/t/keys/k/body", "", foreign...)
	s.Want(404, wire.CodeNotFound, "GET", "/v1/tasks/1/body", "", all...)
	s.Want(404, wire.CodeNotFound, "GET", "/v1/tags/t/keys/other/body", "", all...)
	s.Want(400, wire.CodeInvalidID, "GET", "/v1/tasks/x/body", "", all...)
	if reads := s.entries("action=task.reveal", all...); len(reads) != 0 {
		t.Errorf("reads of an API are recorded: %v", reads)
	}
}

func TestAMaskIsNotStored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saved := s.Save(`{"tag":"t","key":"k","delay":"1h",` + secretMembers + `}`)
	shown := string(ok[wire.Task](s, 200, "GET", "/v1/tasks/"+saved.ID.String(), "").Body.Body)
	s.Want(200, "", "PUT", "/v1/schedules/s", `{"lines":["@daily"],"tag":"t",`+secretMembers+`}`)
	header := `"headers":{"a":"Bearer ` + redact.Mask + `"}`
	for _, refused := range [][3]string{
		{"PATCH", "/v1/tasks/" + saved.ID.String(), `{"body":` + shown + `}`},
		{"PATCH", "/v1/tags/t/keys/k", `{"delay":"2h","body_text":"x ` + redact.Mask + `"}`},
		{"POST", "/v1/tasks", `{"tag":"t","key":"k","on_conflict":"replace_time_and_body","body":` + shown + `}`},
		{"POST", "/v1/tasks", `{"tag":"t",` + header + `}`},
		{"POST", "/v1/tasks/batch", `[{"tag":"t","body":` + shown + `}]`},
		{"PUT", "/v1/schedules/s", `{"lines":["@daily"],"tag":"t","body":` + shown + `}`},
		{"PUT", "/v1/schedules/s", `{"lines":["@daily"],"tag":"t",` + header + `}`},
	} {
		p := s.Want(400, wire.CodeRedacted, refused[0], refused[1], refused[2])
		if !strings.Contains(p.Detail, "raw=true") {
			t.Errorf("%s %s does not say what to do: %s", refused[0], refused[1], p.Detail)
		}
	}
	if got := s.stored(saved.ID); !strings.Contains(got, hidden) || s.count() != 1 {
		t.Errorf("%d tasks, the first is %s", s.count(), got)
	}
}

func TestWithoutARedactorSecretsAreShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Redactor = nil })
	saved := s.Save(`{"tag":"t","delay":"1h",` + secretMembers + `}`)
	got := s.Call("GET", "/v1/tasks/"+saved.ID.String(), "")
	if got.Status != 200 || !strings.Contains(got.Text, hidden) || strings.Contains(got.Text, "redacted") {
		t.Errorf("%d %s", got.Status, got.Text)
	}
}

func TestAddressesOfReceiversAreMasked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const address = "http://127.0.0.1:9/hooks/s3cr3ts3cr3t?key=s3cr3t&s3cr3t"
	made := ok[wire.Receiver](s, 201, "POST", "/v1/receivers", `{"app":"shop","address":"`+address+`","tags":["a"]}`)
	if made.Address != address {
		t.Errorf("its program is told %s", made.Address)
	}
	path := "/v1/receivers/" + made.ID.String()
	for _, call := range [][2]string{
		{"GET", "/v1/receivers"}, {"GET", path}, {"POST", path + "/heartbeat"}, {"DELETE", path}, {"GET", "/v1/audit"},
	} {
		a := s.Call(call[0], call[1], "")
		if strings.Contains(a.Text, "s3cr3t") || a.Text != "" && !strings.Contains(a.Text, ":9/hooks/"+redact.Mask) {
			t.Errorf("%s %s: %d %s", call[0], call[1], a.Status, a.Text)
		}
	}
}
