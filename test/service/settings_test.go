package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestWrongSettingsStopTheStart(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t, dbtest.SQLite)
	f := func(want string, code int, env []string, args ...string) {
		t.Helper()
		s := launch(t, environment(db, env...), args...)
		if got := s.End(); got != code || !strings.Contains(s.Err.String(), want) || s.Out.String() != "" {
			t.Errorf("%v %v: exit code %d, and it says %s%s", env, args, got, s.Out, s.Err)
		}
		if strings.Contains(s.Err.String(), canary) {
			t.Errorf("%v: it says %s", env, s.Err)
		}
	}
	f("unknown flag: --server-listn", 2, nil, "--server-listn", "x")
	f("DELAYTASK_SERVER_LISTN", 2, []string{"DELAYTASK_SERVER_LISTN=x"})
	f("127.0.0.1:8080 or :8080", 2, nil, "--server-listen", "8080")
	f("server.tls.cert and server.tls.key belong together", 2, nil, "--server-tls-cert", "x")
	f("server.tls.cert and server.tls.key", 1, nil, "--server-tls-cert", "x", "--server-tls-key", "y")
	f("DELAYTASK_SECRET is too short", 1, []string{"DELAYTASK_SECRET=short"})
	f("push.allow", 1, []string{"DELAYTASK_PUSH_ALLOW=300.0.0.0/8"})
	f("spans are sent by otlp alone", 2, []string{"OTEL_TRACES_EXPORTER=jaeger"})
	f("OTEL_EXPORTER_OTLP_ENDPOINT must be the URL", 2, tracedTo("user:"+canary+"@collector"))
	f("parse headers", 1, tracedTo("http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS="+canary))
	taken := serve(t, dbtest.New(t, dbtest.SQLite))
	f("already in use; stop what listens there", 1, nil, "--server-listen", strings.TrimPrefix(taken.URL, "http://"))
}

// The command of the systemd unit, with the settings of the packages, on another database.
func TestTheCommandOfTheUnitServes(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/delaytask.service")
	servertest.OK(t, err)
	_, after, _ := strings.Cut(string(unit), "ExecStart=")
	line, _, _ := strings.Cut(after, "\n")
	command := strings.Fields(line)
	file, err := filepath.Abs("../../deploy/package/config.yaml")
	servertest.OK(t, err)
	for i, word := range command {
		if word == "/etc/delaytask/config.yaml" {
			command[i] = file
		}
	}
	if command[0] != "delaytask" || command[1] != "serve" {
		t.Fatalf("the unit runs %q", command)
	}
	s := launch(t, environment(dbtest.New(t, dbtest.SQLite)), command[2:]...)
	s.serves()
	s.Stops()
}
