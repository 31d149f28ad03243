package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/delaytask/delaytask/internal/testkit/golden"
)

// commands returns every command, without cobra's own.
func commands(t *testing.T) (all []*cobra.Command) {
	t.Helper()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" || c.Hidden {
			return
		}
		all = append(all, c)
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(new(app).rootCommand())
	return all
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	// Groups of commands, and serve.
	printsNoData := []string{"delaytask", "migrate", "token", "bulk", "config", "schedule", "serve"}
	for _, c := range commands(t) {
		if c.Short == "" || c.Example == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s has the short help %q and the example %q", c.CommandPath(), c.Short, c.Example)
		}
		for _, line := range strings.Split(c.Long, "\n") {
			if len(line) > 130 {
				t.Errorf("%s: a line of its help has %d characters", c.CommandPath(), len(line))
			}
		}
		if has := c.Flags().Lookup("json") != nil; has == slices.Contains(printsNoData, c.Name()) {
			t.Errorf("%s: --json is %t", c.CommandPath(), has)
		}
		for _, word := range strings.Fields(c.Example) {
			if name, isFlag := strings.CutPrefix(word, "--"); isFlag && !anyHas(c.Root(), name) {
				t.Errorf("%s: the example uses --%s", c.CommandPath(), name)
			}
		}
	}
}

func anyHas(c *cobra.Command, flag string) bool {
	has := func(flags *pflag.FlagSet) bool { return flags.Lookup(flag) != nil }
	return has(c.Flags()) || has(c.PersistentFlags()) ||
		slices.ContainsFunc(c.Commands(), func(child *cobra.Command) bool {
			return anyHas(child, flag)
		})
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"help", "save"}, {"save", "--help"},
		{"migrate", "up", "-h"}} {
		if r := s.run(args...); r.code != exitDone || !strings.Contains(r.stdout, "Usage:") || r.stderr != "" {
			t.Errorf("%v: code %d, stderr %q", args, r.code, r.stderr)
		}
	}
}

func TestTheShellCompletes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	f := func(want string, args ...string) {
		t.Helper()
		r := s.run(append([]string{"__complete"}, args...)...)
		if got := strings.Join(strings.Fields(r.stdout), " "); got != strings.TrimPrefix(want+" :4", " ") { // no files
			t.Errorf("%v completes to %q", args, got)
		}
	}
	f("pending executing completed failed cancelled", "list", "--status", "")
	f("pending", "cancel", "--status", "")
	f("failed", "retry", "--status", "")
	f("mysql sqlite", "migrate", "sql", "--for", "")
	f("save save_http read bodies change work observe operate metrics audit register schedule all",
		"token", "create", "--verbs", "")
	f("", "get", "")
	f("", "get", "--wait", "")
	contains(t, s.ok("__complete", "serve", "--server-tls-cert", ""), ":0")
	f("once skip both literal", "schedule", "preview", "--dst", "")
	f("", "schedule", "preview", "")
	f("skip queue_one replace allow", "schedule", "create", "--overlap", "")
	contains(t, s.ok("completion", "bash"), "delaytask")
}

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

// TestPrintedJSON fixes what scripts rely on.
func TestPrintedJSON(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("mail", `{"n":1}`, "--key", "k", "--app", "shop", "--delay", "30m", "--ttr", "20s", "--max-attempts", "2",
		"--priority", "5", "--header", "h=v", "--max-lateness", "10m:skip")
	s.exec(`UPDATE delay_task_message SET id = 8, status = 1, version = 6, attempt = 2, crash_count = 1,
		ip_address = 167772167, process = 81985529216486895, claim = 1, error_stack = 'on fire',
		expected_time = '2026-03-01 12:00:00.000000', start_time = '2026-03-01 12:00:00.001250',
		due_time = '2026-03-01 12:00:02.000000',
		create_time = '2026-03-01 11:30:00.000000', update_time = '2026-03-01 12:00:02.000000',
		errors = '[{"n":1,"due":"2026-03-01T12:00:00Z","started":"2026-03-01T12:00:00.00125Z",
			"finished":"2026-03-01T12:00:01Z","executor":"host:7:0123456789abcdef:1","error":"smoke"}]'`)
	s.exec(`INSERT INTO delay_task_process (id, name, pid, seen_time)
		VALUES (81985529216486895, 'host', 7, '2026-03-01 12:00:00.000000')`)
	s.exec(`INSERT INTO delay_task_message (id, tag, message_body, expected_time, due_time, create_time, update_time)
		VALUES (9, 'mail', 'no JSON', '2026-03-01 12:00:00.000000', '2026-03-01 12:00:00.000000',
		'2026-03-01 12:00:00.000000', '2026-03-01 12:00:00.000000')`)
	s.exec(`INSERT INTO delay_task_token (name, hash, tags, verbs, create_time, expire_time)
		VALUES ('ci', 'hash', '["mail"]', '["save"]', '2026-03-01 12:00:00.000000', '2026-03-02 12:00:00.000000')`)
	var all strings.Builder
	for _, command := range []string{
		"get 8", "list --bodies --limit 1", "explain 8", "stats", "token list", "pause mail",
	} {
		all.WriteString("$ delaytask " + command + " --json\n" + s.ok(append(strings.Fields(command), "--json")...))
	}
	golden.Check(t, "testdata/json.txt", all.String())
}
