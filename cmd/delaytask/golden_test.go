package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/golden"
)

func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var all strings.Builder
	for _, c := range commands(t) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		all.WriteString("$ " + c.CommandPath() + " --help\n" + s.ok(args...) + "\n")
	}
	golden.Check(t, "testdata/help.txt", all.String())
}

func TestPrintedSettings(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	folder := filepath.Dir(strings.TrimPrefix(s.dsn, "sqlite:"))
	for file, args := range map[string][]string{
		"testdata/config.yaml": {"config", "print"},
		"testdata/config.json": {"config", "print", "--json"},
	} {
		golden.Check(t, file, strings.ReplaceAll(s.ok(args...), folder, "FOLDER"))
	}
}
