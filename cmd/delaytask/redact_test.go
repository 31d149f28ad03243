package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestSecretsAreHiddenUnlessRaw(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const hidden = "canary-Qxy"
	failed := s.save("mail", `{"password":"`+hidden+`"}`, "--header", "x-api-key="+hidden,
		"--delay", "1h", "--key", "k")
	s.exec(`UPDATE delay_task_message SET status = 2, error_stack = 'dial: token=`+hidden+`',
		errors = '[{"n":1,"executor":"e","error":"dial: token=`+hidden+`"}]' WHERE id = ?`, failed)
	s.ok("schedule", "create", "nightly", "@daily", "--tag", "mail", "--body", "secret="+hidden,
		"--header", "token="+hidden)
	s.ok("schedule", "pause", "nightly", "--reason", "password: "+hidden)
	for _, command := range []string{
		"get " + failed, "get --json " + failed, "list --bodies --json", "explain " + failed,
		"explain --json " + failed,
		"failures", "failures --json", "schedule show nightly", "schedule show --json nightly", "schedule list --json",
		"schedule explain nightly", "schedule explain nightly --json",
	} {
		shown := s.run(strings.Fields(command)...)
		if shown.code != 0 || strings.Contains(shown.stdout+shown.stderr, hidden) ||
			!strings.Contains(shown.stdout, redact.Mask) {
			t.Errorf("%s: code %d\n%s%s", command, shown.code, shown.stdout, shown.stderr)
		}
		if raw := s.ok(append(strings.Fields(command), "--raw")...); !strings.Contains(raw, hidden) ||
			strings.Contains(raw, redact.Mask) {
			t.Errorf("%s --raw:\n%s", command, raw)
		}
	}
	contains(t, s.run("get", failed).stderr, "--raw")
	alone := s.run("get", failed, "--body")
	if want := `{"password":"` + redact.Mask + `"}`; alone.stdout != want || !strings.Contains(alone.stderr, "--raw") {
		t.Errorf("the body alone is %q, %s", alone.stdout, alone.stderr)
	}
	if raw := s.ok("get", failed, "--body", "--raw"); raw != `{"password":"`+hidden+`"}` {
		t.Errorf("the stored body alone is %q", raw)
	}
	if r := s.run("get", failed, "--body", "--json"); r.code != exitWrongUse {
		t.Errorf("--body --json: code %d", r.code)
	}
	s.exec(`UPDATE delay_task_message SET due_time =
		strftime('%Y-%m-%d %H:%M:%S.000000') WHERE id = ?`, failed)
	if o := s.ok("overview") + s.ok("overview", "--json"); strings.Contains(o, hidden) ||
		!strings.Contains(o, redact.Mask) {
		t.Errorf("the overview shows %s", o)
	}
	if log := s.ok("audit") + s.ok("audit", "--json"); strings.Contains(log, hidden) {
		t.Errorf("the audit log shows %s", log)
	}

	file := filepath.Join(t.TempDir(), "body.json")
	servertest.OK(t, os.WriteFile(file, []byte(`{"password":"`+redact.Mask+`"}`), 0o600))
	for _, args := range [][]string{
		{"save", "mail", "@" + file}, {"save", "mail", "{}", "--header", "x-api-key=" + redact.Mask},
		{"schedule", "update", "nightly", "--body", "@" + file},
	} {
		if r := s.run(args...); r.code != exitWrongUse || !strings.Contains(r.stderr, "--raw") {
			t.Errorf("%v: code %d, %s", args, r.code, r.stderr)
		}
	}
	if got := failureOf(delaytask.ErrRedacted).Code; got != "redacted" {
		t.Errorf("the code is %s", got)
	}
	broken := s.save("mail", "{}")
	s.exec(`UPDATE delay_task_message SET headers = '{"token":"`+hidden+`"' WHERE id = ?`, broken)
	for _, args := range [][]string{{"list"}, {"get", broken}, {"get", broken, "--body"}, {"list", "--json"}} {
		if r := s.run(args...); strings.Contains(r.stdout+r.stderr, hidden) {
			t.Errorf("%v shows %s%s", args, r.stdout, r.stderr)
		}
	}
	got := sentence(errors.New("dial root:" + hidden + "@tcp(db:3306)/app: refused"))
	if strings.Contains(got, hidden) {
		t.Errorf("the command says %s", got)
	}
	s.environ = []string{"DELAYTASK_SERVER_REDACT_NAMES=card_number"}
	contains(t, s.ok("get", s.save("mail", `{"cardNumber":"4111"}`)), `{"cardNumber":"`+redact.Mask+`"}`)
}
