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

// TestPrintedJSON holds what scripts rely on.
func TestPrintedJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("mail", `{"n":1}`, "--key", "k", "--app", "shop", "--delay", "30m", "--ttr", "20s", "--max-attempts", "2",
		"--priority", "5", "--header", "h=v", "--max-lateness", "10m:skip")
	s.exec(`UPDATE delay_task_message SET id = 8, status = 1, version = 6, attempt = 2, crash_count = 1,
		ip_address = 167772167, executor = 'host:7:token:1', error_stack = 'on fire',
		expected_time = '2026-03-01 12:00:00.000000', execution_time = '2026-03-01 12:00:00.001250',
		finish_time = '2026-03-01 12:00:02.000000', due_time = '2026-03-01 12:00:02.000000',
		create_time = '2026-03-01 11:30:00.000000', update_time = '2026-03-01 12:00:02.000000',
		errors = '[{"n":1,"due":"2026-03-01T12:00:00Z","started":"2026-03-01T12:00:00.00125Z",
			"finished":"2026-03-01T12:00:01Z","executor":"host:7:token:1","error":"smoke"}]'`)
	s.exec(`INSERT INTO delay_task_message (id, tag, message_body, expected_time, due_time, create_time, update_time)
		VALUES (9, 'mail', 'no JSON', '2026-03-01 12:00:00.000000', '2026-03-01 12:00:00.000000',
		'2026-03-01 12:00:00.000000', '2026-03-01 12:00:00.000000')`)
	s.exec(`INSERT INTO delay_task_token (name, hash, tags, verbs, create_time, expire_time)
		VALUES ('ci', 'hash', '["mail"]', '["save"]', '2026-03-01 12:00:00.000000', '2026-03-02 12:00:00.000000')`)
	var all strings.Builder
	for _, command := range []string{
		"get 8", "list --bodies --after 8", "explain 8", "stats", "token list", "pause mail",
	} {
		all.WriteString("$ delaytask " + command + " --json\n" + s.ok(append(strings.Fields(command), "--json")...))
	}
	golden.Check(t, "testdata/json.txt", all.String())
}
