package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func TestMigrateUpStatusAndDown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	contains(t, s.ok("migrate", "up"), "applied 00001_tables.sql")
	contains(t, s.ok("migrate", "up"), "The tables are up to date.")
	var states []migrationView
	if s.items(&states, "migrate", "up"); states == nil || len(states) != 0 {
		t.Errorf("a second time it changed %v", states)
	}
	s.exec("DROP TABLE delay_task_tag")
	if r := s.run("migrate", "up"); r.code != exitFailed ||
		!strings.Contains(r.stderr, "table delay_task_tag is missing; run what is missing of the statements") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	s.exec(s.ok("migrate", "sql"))
	s.ok("migrate", "up")
	s.interactive, s.stdin = true, "no\n"
	if r := s.run("migrate", "down"); r.code != exitFailed || !strings.Contains(r.stderr, "[y/N]") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	if s.items(&states, "migrate", "down", "--yes"); len(states) != 1 || states[0].Applied {
		t.Errorf("it took back %v", states)
	}
	s.items(&states, "migrate", "status")
	for i, state := range states {
		if last := i == len(states)-1; state.Applied == last || state.Version == 0 {
			t.Errorf("after down: %+v", state)
		}
	}
	contains(t, s.ok("migrate", "status"), "VERSION", "pending")
	contains(t, s.ok("migrate", "down", "--yes"), "nothing to take back")
}

func TestMigrateSQLNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	contains(t, s.ok("migrate", "sql"), "CREATE TABLE", "AUTOINCREMENT")
	contains(t, s.ok("migrate", "sql", "--for", "mysql"), "CREATE TABLE", "AUTO_INCREMENT")
	contains(t, s.ok("migrate", "sql", "--for", "mysql", "--json"), `"kind": "mysql"`, "AUTO_INCREMENT")
	contains(t, s.ok("migrate", "sql", "--dsn", "u:p@tcp(nowhere:1)/db"), "AUTO_INCREMENT")
}

func TestStatsShowHowLateTasksStarted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serve("print", 3, nil)
	var stats []wire.TagStats
	s.items(&stats, "stats")
	if len(stats) != 1 || stats[0].Counts["completed"] != 3 || stats[0].Lateness == nil ||
		stats[0].Lateness.Samples != 3 || stats[0].Lateness.Max <= 0 || stats[0].Lateness.Max < stats[0].Lateness.P50 ||
		!time.Time(stats[0].OldestPending).IsZero() {
		t.Errorf("stats are %+v", stats)
	}
	contains(t, s.ok("stats"), "LATE P50", "print", " ms")
}

func TestTablesOfManyTagsShowTheLongestDue(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for i, tag := range []string{"a", "b", "c"} {
		s.save(tag, "x", "--delay", fmt.Sprint(30-10*i, "m"))
	}
	r := s.run("stats", "--limit", "1")
	contains(t, r.stdout, "\nc ")
	contains(t, r.stderr, "2 more tags not shown")
	if strings.Contains(r.stdout, "\na ") {
		t.Errorf("it shows\n%s", r.stdout)
	}
	contains(t, s.run("overview", "--limit", "2").stderr, "1 more tag not shown")
	var stats []wire.TagStats
	if s.items(&stats, "stats", "--limit", "1"); len(stats) != 3 {
		t.Errorf("JSON has %+v", stats)
	}
}

func TestPauseAndResumeShowInStats(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("mail", "x")
	paused := func() bool {
		var stats []wire.TagStats
		s.items(&stats, "stats")
		if len(stats) != 1 || stats[0].Tag != "mail" || stats[0].Counts["pending"] != 1 || stats[0].Served {
			t.Fatalf("stats are %+v", stats)
		}
		return stats[0].Paused
	}
	contains(t, s.ok("pause", "mail"), "Paused mail")
	if !paused() {
		t.Error("the pause does not show")
	}
	contains(t, s.ok("stats"), "unserved, paused")
	contains(t, s.ok("pause", "mail"), "mail was paused already; nothing has changed.")
	contains(t, s.ok("resume", "nosuch", "mail"), "nosuch was not paused; nothing has changed.", "Resumed mail;")
	var views []tagView
	s.items(&views, "pause", "mail")
	if len(views) != 1 || views[0] != (tagView{Tag: "mail", Paused: true, Changed: true}) {
		t.Errorf("the pause is shown as %+v", views)
	}
	if s.items(&views, "resume", "nosuch", "mail"); len(views) != 2 || views[0] != (tagView{Tag: "nosuch"}) ||
		views[1] != (tagView{Tag: "mail", Changed: true}) || paused() {
		t.Errorf("the resume is shown as %+v", views)
	}
}

func TestPauseGoesOnAfterATagThatCannotBe(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("mail", "x")
	r := s.run("pause", "bad!", "mail")
	if r.code != exitWrongUse {
		t.Errorf("exit code %d", r.code)
	}
	contains(t, r.stdout, "Paused mail;")
	contains(t, r.stderr, `got "bad!"`)
	contains(t, s.ok("stats"), "paused")
}

func TestAPauseOfATagThatNothingHasWarns(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("mail", "x")
	r := s.run("pause", "mail", "mial")
	contains(t, r.stdout, "Paused mail, mial;")
	contains(t, r.stderr, "Warning: mial: no live process serves the tag")
	if r.code != exitDone || strings.Contains(r.stderr, "Warning: mail:") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	var views []tagView
	s.items(&views, "pause", "other")
	if len(views) != 1 || views[0].Warning != operate.Unseen {
		t.Errorf("the pause is shown as %+v", views)
	}
}

func TestExplainSaysWhy(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("tag", "x", "--delay", "1h")
	contains(t, s.ok("explain", id), id, "pending", "due at", "No live node serves")
	f := func(want report.Reason) {
		t.Helper()
		var e struct {
			Reason report.Reason
			Text   string
			Task   taskView
		}
		if s.decode(&e, "explain", id); e.Reason != want || e.Task.ID.String() != id || e.Text == "" {
			t.Errorf("got %+v, want %s", e, want)
		}
	}
	f(report.ReasonNotDue)
	s.exec("UPDATE delay_task_message SET status = 2, crash_count = 3 WHERE id = ?", id)
	f(report.ReasonFinished)
	s.environ = []string{"DELAYTASK_QUARANTINE=3"}
	f(report.ReasonQuarantined)
	s.exec("UPDATE delay_task_message SET expected_time = 'tomorrow' WHERE id = ?", id)
	out := s.ok("explain", id)
	contains(t, out, "Task "+id, "cannot be read", "expected_time")
	if strings.Contains(out, "()") { // in the place of the tag
		t.Errorf("printed\n%s", out)
	}
}

func TestStatsAndNodesOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.ok("stats"), "There are no tasks")
	contains(t, s.ok("nodes"), "No process shares this database")
	for _, command := range []string{"stats", "nodes", "list", "token list", "migrate up"} {
		if out := s.ok(append(strings.Fields(command), "--json")...); out != "{\n  \"items\": []\n}\n" {
			t.Errorf("%s --json printed %q", command, out)
		}
	}
}

func TestNodesLeaveTheCommandItselfOut(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	nothing := func(context.Context, *delaytask.Task) error { return nil }
	node := s.node(scheduler.Config{NodeName: "web-1", Address: "10.0.0.7:80"}, "mail", nothing)
	defer func() { _ = node.Stop(context.WithoutCancel(t.Context())) }()
	for !strings.Contains(s.ok("nodes", "--json"), `"mail"`) {
		runtime.Gosched() // a node that has just started announces its tags in the background
	}
	contains(t, s.ok("nodes", "--json"), `"name": "web-1"`, `"address": "10.0.0.7:80"`, `"state": "alive"`, `"mail"`)
	contains(t, s.ok("nodes", "--json"), `"position": 1,`, `"total": 1`)
	contains(t, s.ok("nodes"), "mail (1 of 1)")
	if out := s.ok("nodes"); strings.Contains(out, commandNode) {
		t.Errorf("printed\n%s", out)
	}
}

func TestConfigPrintShowsWhatIsInForce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	contains(t, s.ok("config", "print", "--concurrency", "7"), "concurrency: 7")
	contains(t, s.ok("config", "print", "--json", "--ttr", "30s"), `"ttr_ms": 30000`)
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if r := s.run("config", "print", "--config", missing); r.code != exitWrongUse ||
		!strings.Contains(r.stderr, missing) {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

func TestLogLevelMeansWhatItSays(t *testing.T) {
	t.Parallel()
	for setting, least := range map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		log := (&app{stderr: io.Discard}).logger(config.Log{Level: setting})
		if !log.Enabled(t.Context(), least) || log.Enabled(t.Context(), least-1) {
			t.Errorf("log.level %s does not begin at %v", setting, least)
		}
	}
}

func TestVersionNamesLibraryAndGo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	contains(t, s.ok("version"), "delaytask 0.")
	if short, long := s.ok("--version"), s.ok("version"); short != long {
		t.Errorf("--version prints %q, and version %q", short, long)
	}
	contains(t, s.ok("version", "--json"), `"version": "0.`, `"go": "go1.`)
}

func TestStatsSayThatPlainInsertsAreLate(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	s.exec("INSERT INTO delay_task_message (id, tag, message_body) VALUES (9223372036854775807, 't', '')")
	const mend = "run: UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM delay_task_message) WHERE name = " +
		"'delay_task_message'"
	contains(t, s.run("stats").stderr, "level=WARN", mend)
	var line struct{ Level, Warning string }
	if err := json.Unmarshal([]byte(s.run("stats", "--json").stderr), &line); err != nil || line.Level != "WARN" ||
		!strings.HasSuffix(line.Warning, mend) {
		t.Errorf("it logs %+v, %v", line, err)
	}
}
