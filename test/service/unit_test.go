package service

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// The command of the systemd unit, with another place for its settings.
func TestTheCommandOfTheUnitServes(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/delaytask.service")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(unit), "ExecStart=")
	line, _, _ := strings.Cut(after, "\n")
	command := strings.Fields(line)
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, word := range command {
		if word == "/etc/delaytask/config.yaml" {
			command[i] = file
		}
	}
	if command[0] != "/usr/local/bin/delaytask" || command[1] != "serve" {
		t.Fatalf("the unit runs %q", command)
	}
	s := launch(t, environment(dbtest.New(t, dbtest.SQLite)), command[2:]...)
	s.serves()
	s.signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
