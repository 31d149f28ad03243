package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

var (
	readingCommands = []string{"list", "overview", "stats", "forecast", "nodes", "get 1", "explain 1", "migrate status",
		"token list"}
	writingCommands = []string{"save t x", "cancel 1", "cancel --tag t --yes", "retry 1", "reschedule 1 --delay 1s",
		"pause t", "resume t", "migrate up", "migrate down --yes", "token create a --tags * --verbs all",
		"token revoke a"}
)

func TestOnlyWritingCommandsWantADatabaseThatIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &shell{t: t}
	f := func(code int, want string, commands ...string) {
		t.Helper()
		for _, command := range commands {
			if r := s.run(strings.Fields(command)...); r.code != code || !strings.Contains(r.stderr, want) {
				t.Errorf("%s: code %d, %s", command, r.code, r.stderr)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Fatalf("%s leaves %v, %v", command, left, err)
			}
		}
	}
	f(exitWrongUse, "--dsn sqlite:delaytask.db", writingCommands...)
	f(exitFailed, "there is no database", readingCommands...)

	s.ok("migrate", "up", "--dsn", "sqlite:delaytask.db") // as serve would
	for _, command := range []string{"list", "stats", "nodes", "migrate status", "token list"} {
		s.ok(strings.Fields(command)...)
	}
	if r := s.run("save", "t", "x"); r.code != exitWrongUse {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

func TestWritingCommandsSayWhichDatabase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("save", "t", "x")
	if want := "Database: " + s.dsn + ", a new file (DELAYTASK_DSN)"; r.database != want {
		t.Errorf("it says %q", r.database)
	}
	for _, command := range writingCommands {
		r := s.run(append(strings.Fields(command), "--dsn", s.dsn)...)
		contains(t, r.database, s.dsn+" (--dsn)")
	}
	s.ok("migrate", "up")
	file := filepath.Join(t.TempDir(), "settings.yaml")
	servertest.OK(t, os.WriteFile(file, []byte("dsn: "+s.dsn), 0o600))
	s.dsn = ""
	contains(t, s.run("pause", "t", "--config", file).database, "("+file+": dsn)")
	for _, quiet := range []string{"pause t --json", "list", "stats", "get --tag t --key k"} {
		if r := s.run(append(strings.Fields(quiet), "--config", file)...); r.database != "" {
			t.Errorf("%s says %s", quiet, r.database)
		}
	}
}

func TestAForeignFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.exec("CREATE TABLE notes (text TEXT)")
	file := strings.TrimPrefix(s.dsn, "sqlite:")
	before, err := os.ReadFile(file)
	servertest.OK(t, err)
	for _, command := range append(readingCommands, writingCommands...) {
		if strings.HasPrefix(command, "save") || command == "migrate up" {
			continue // which create tables
		}
		if r := s.run(strings.Fields(command)...); r.code != exitFailed ||
			!strings.Contains(r.stderr, "delaytask migrate up") {
			t.Errorf("%s: code %d, %s", command, r.code, r.stderr)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
}

// What a command stored there, the primary would never have.
func TestCommandsChangeNothingOnAReplica(t *testing.T) {
	t.Parallel()
	s := &shell{t: t, dsn: dbtest.NewDisposable(t, dbtest.MySQL).Database(t).DSN}
	s.ok("migrate", "up")
	servertest.Exec(t, s.dsn, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 9,"+
		" SOURCE_USER = 'x'")
	servertest.Exec(t, s.dsn, "START REPLICA")
	for _, command := range writingCommands {
		if r := s.run(strings.Fields(command)...); r.code != exitFailed || !strings.Contains(r.stderr, "127.0.0.1:9") {
			t.Errorf("%s: code %d, %s", command, r.code, r.stderr)
		}
	}
	contains(t, s.run("list").stderr, "The server is a replica of 127.0.0.1:9")
	allowed := filepath.Join(t.TempDir(), "settings.yaml")
	servertest.OK(t, os.WriteFile(allowed, []byte("on_replica: true"), 0o600))
	s.ok("save", "t", "x", "--config", allowed)
}

func TestOnlyReadingCommandsWorkOnAReadOnlyServer(t *testing.T) {
	t.Parallel()
	d := dbtest.NewDisposable(t, dbtest.MySQL).Database(t)
	s := &shell{t: t, dsn: d.DSN}
	s.ok("migrate", "up")
	id := s.save("t", "x", "--delay", "30s")
	servertest.Exec(t, d.DSN, "SET GLOBAL super_read_only = 1")
	f := func(code int, want string, commands ...string) {
		t.Helper()
		for _, command := range commands {
			command = strings.Replace(command, " 1", " "+id, 1)
			if r := s.run(strings.Fields(command)...); r.code != code || !strings.Contains(r.stderr, want) {
				t.Errorf("%s: code %d, %s", command, r.code, r.stderr)
			}
		}
	}
	of := func(commands []string, except string) []string {
		return slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return c == except })
	}
	f(exitDone, "The server is read-only: what it shows may be behind", of(readingCommands, "migrate status")...)
	f(exitDone, "", "migrate status", "migrate up")
	f(exitFailed, "the server is read-only (connect to the primary", of(writingCommands, "migrate up")...)
	for _, statement := range []string{
		"SET GLOBAL read_only = 0", "DROP TABLE delay_task_goose_version", "SET GLOBAL super_read_only = 1",
	} {
		servertest.Exec(t, d.DSN, statement)
	}
	f(exitFailed, "the server is read-only (connect to the primary", "migrate up")
}
