package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands returns every command that delaytask has of its own.
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
	printsNoData := []string{"delaytask", "migrate", "token", "config", "serve"} // groups, and what prints where it serves
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
	return has(c.Flags()) || has(c.PersistentFlags()) || slices.ContainsFunc(c.Commands(), func(child *cobra.Command) bool {
		return anyHas(child, flag)
	})
}

func TestHelpGoesToStandardOutput(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"help", "save"}, {"save", "--help"}, {"migrate", "up", "-h"}} {
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
		if got, _, _ := strings.Cut(r.stdout, ":"); strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("%v completes to %q", args, got)
		}
	}
	f("pending executing completed failed cancelled", "list", "--status", "")
	f("pending", "cancel", "--status", "")
	f("failed", "retry", "--status", "")
	f("mysql sqlite", "migrate", "sql", "--for", "")
	f("save save_http read change work operate metrics register all", "token", "create", "--verbs", "")
	f("", "get", "")
	contains(t, s.ok("completion", "bash"), "delaytask")
}
