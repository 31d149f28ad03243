package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	f := func(code int, stdout, stderr string, args ...string) result {
		t.Helper()
		r := s.run(append([]string{"doctor"}, args...)...)
		if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
			t.Errorf("doctor %v: code %d, want %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
		}
		return r
	}
	f(exitWrongUse, "", "there is no database")
	f(exitWrongUse, "", "want info, warning or critical", "--fail-on", "ok")
	s.ok("migrate", "up")
	f(exitDone, "0 findings in ", "")
	s.exec("INSERT INTO delay_task_message (tag, message_body, expected_time, due_time)" +
		" VALUES ('t', '', '2026-03-01 12:00:00.000000', '2026-03-01 12:00:00.000000')")
	f(exitFailed, "warning   tags_unserved: ", "the database needs attention")
	f(exitDone, "tags_unserved", "", "--fail-on", "critical")
	var printed struct {
		Items  []struct{ Code, Severity, Title, Meaning, Fix string }
		Checks []struct{ Check, Severity string }
	}
	r := f(exitFailed, "", `"code":"findings"`, "--json")
	servertest.OK(t, json.Unmarshal([]byte(r.stdout), &printed))
	if len(printed.Items) != 1 || printed.Items[0].Severity != "warning" || len(printed.Checks) < 10 {
		t.Errorf("it prints %s", r.stdout)
	}
}

func TestDoctorLeavesAForeignFileAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.exec("CREATE TABLE notes (text TEXT)")
	file := strings.TrimPrefix(s.dsn, "sqlite:")
	before, err := os.ReadFile(file)
	servertest.OK(t, err)
	if r := s.run("doctor"); r.code != exitFailed || !strings.Contains(r.stdout, "fix: delaytask migrate up") {
		t.Errorf("code %d, %s", r.code, r.stdout)
	}
	if after, err := os.ReadFile(file); err != nil || !slices.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
}
