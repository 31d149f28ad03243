package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestWrongUseIsTwo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	for _, line := range []string{
		"nosuch", "help nosuch", "completion nosuch", "completion bash more", "migrate", "migrate sideways", "config",
		"config prnt", "--nosuch", "list --nosuch", "list more", "list --status waiting", "list --limit 0",
		"migrate down", "list --limit x", "list --after x", "list --older -1h", "list --tag bad!",
		"save", "save a b c", "save bad! x", "save t x --delay 1", "save t x --delay -1s", "save t x --at tomorrow",
		"save t x --at 86400", "save t x --delay 1s --at 2030-01-01T00:00:00Z", "save t x --ttr 25h",
		"save t x --ttr soon", "save t x --priority 101", "save t x --priority high",
		"save t x --max-attempts -1", "save t x --header novalue", "save t x --header =v",
		"save t x --header Delaytask-app=shop",
		"save t x --max-lateness 10m", "save t x --max-lateness 10m:drop", "save t x --max-lateness :skip",
		"save t x --key k --on-conflict replace", "save t x --on-conflict replace-time",
		"save t x --key k --max-wait 5m", "save t x --key k --on-conflict only-later --max-wait soon",
		"save t x --key s3:k", "save t x --id 5", "save t x --id five", "save t x --at 1960-01-01T00:00:00Z",
		"save t x --at 9999-12-31T00:00:00Z", "get", "get x", "get -- -1", "get 1 2", "get --tag t",
		"get --key k", "get 1 --wait soon", "get 1 --wait -1s", "get 1 --tag t --key k",
		"get 1 --app a", "get --tag t --app a",
		"get --tag t --key k --app bad!", "save t x --app bad!", "list --app a",
		"list --key k --app bad!", "cancel 1 --app a",
		"explain", "explain 0", "reschedule 1", "reschedule --delay 1s", "reschedule 1 --delay later",
		"cancel", "cancel 1 --tag t", "cancel x", "cancel 1 x", "cancel --status failed", "cancel --older x",
		"list --tag=", "list --late-by 0", "list --group=", "cancel --tag= --older 0 --yes", "cancel --late-by 0 --yes",
		"cancel --tag t --error= --yes", "retry --status= --older 0 --yes",
		"cancel --key k", "cancel --tag t", "retry --tag t",
		"retry", "retry 1 --tag t", "retry --status pending", "pause", "pause bad!", "resume", "stats more",
		"overview more", "forecast more", "forecast --span 2h", "forecast --span soon", "forecast --tag bad!",
		"nodes more", "version more", "demo more", "health more", "health --timeout soon", "health --url ftp://h",
		"config print --concurrency none", "config print --ttr 1ms",
		"bench more", "bench --repeats 0", "bench --only nosuch",
		"bench --dsn nonsense", "token", "token more", "token list more", "token revoke", "token revoke a b",
		"token create", "token create a b --tags * --verbs all", "token create a", "token create a --tags *",
		"token create a --verbs all", "token create a --tags * --verbs pop",
		"token create a --tags a*b --verbs all", "token create bad! --tags * --verbs all",
		"token create a --tags * --verbs all --expires never", "token create a --tags * --verbs all --expires 0s",
		"token create a --tags * --verbs all --expires -1h", "token create a --tags * --verbs all --expires 999999999d",
		"token create a --tags * --verbs all,", "token create a --tags \" --verbs all",
		"migrate up more", "migrate sql --for oracle", "list --dsn nonsense", "list --dsn sqlite:",
		"demo --dsn nonsense", "demo --port 8081", "demo --ui --dsn sqlite:tasks.db", "demo --ui --port 65536",
		"schedule", "schedule more", "schedule preview",
		"schedule create", "schedule create x", "schedule create x @daily", "schedule create x @daily --tag bad!",
		"schedule create x @daily --tag t --overlap x", "schedule create x @daily --tag t --jitter soon",
		"schedule create x @daily --tag t --max-open 2", "schedule create x/backfill/1 @daily --tag t",
		"schedule create x @daily --tag t --keep-runs 0", "schedule create x @daily --tag t --header a",
		"schedule update", "schedule list more", "schedule list --limit 0", "schedule show", "schedule pause a b",
		"schedule delete x", "schedule backfill x", "schedule backfill x --from now --to now",
		"schedule ticks x --limit 1001", "schedule ticks x --before now",
	} {
		r := s.run(strings.Fields(line)...)
		if r.code != exitWrongUse {
			t.Errorf("delaytask %s: exit code %d, want 2\n%s", line, r.code, r.stderr)
		}
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		once := strings.Count(r.stderr, "delaytask: ") == 1 && strings.HasPrefix(r.stderr, "delaytask: ")
		if !once || len(lines) != 2 || !strings.HasSuffix(lines[1], "--help") {
			t.Errorf("delaytask %s wrote\n%s", line, r.stderr)
		}
		if r.stdout != "" {
			t.Errorf("delaytask %s printed %s", line, r.stdout)
		}
	}
}

func TestFailureIsOneAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("tag", "x", "--key", "k")
	f := func(line, want string) {
		t.Helper()
		r := s.run(strings.Fields(line)...)
		if r.code != exitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
			strings.Count(r.stderr, "delaytask: ") != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("delaytask %s: exit code %d\n%s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	f("get 5", "delaytask list shows what there is")
	f("get --tag tag --key none", "delaytask list")
	f("explain 5", "not found")
	f("cancel 5", "not found")
	f("retry "+id, "only failed tasks can be retried")
	f("reschedule 5 --delay 1s", "not found")
	f("save tag x --key k", "task "+id)
	f("save tag @/no/such/file", "/no/such/file")
	f("list --dsn sqlite:/no/such/folder/tasks.db", "--dsn")
	f("save t x --dsn sqlite:/no/such/folder/tasks.db", "folder")
	f("migrate status --dsn sqlite:"+filepath.Join(t.TempDir(), "none.db"), "delaytask migrate up")
	f("token list --dsn sqlite:"+filepath.Join(t.TempDir(), "none.db"), "delaytask migrate up")
	s.ok("token", "create", "shop", "--tags", "*", "--verbs", "all")
	f("token create shop --tags a --verbs save", "revoke it first, or choose another name")
	f("token revoke nobody", "delaytask token list shows what there is")
	s.exec("DROP TABLE delay_task_token")
	f("token create ci --tags * --verbs all", "table delay_task_token is missing (run: delaytask migrate up, "+
		"or set scheduler.Config{Migrate: true})")
}

func TestErrorsAreJSONWhereJSONIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	none := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	id := s.save("tag", "x", "--key", "k")
	f := func(exit int, code, line string) failure {
		t.Helper()
		r := s.run(strings.Fields(line + " --json")...)
		var said map[string]failure
		if err := json.Unmarshal([]byte(r.stderr), &said); err != nil || len(said) != 1 {
			t.Fatalf("delaytask %s: %v in %s", line, err, r.stderr)
		}
		if e := said["error"]; r.code != exit || e.Code != code || e.Message == "" {
			t.Errorf("delaytask %s: exit code %d, %+v", line, r.code, e)
		}
		return said["error"]
	}
	f(exitFailed, wire.CodeNotFound, "get 5")
	f(exitFailed, wire.CodeNotFailed, "retry "+id)
	f(exitFailed, wire.CodeNotFound, "token revoke nobody")
	f(exitFailed, "partly_failed", "cancel 5 6")
	f(exitFailed, "no_database", "list --dsn "+none)
	f(exitFailed, "failed", "list --dsn sqlite:/etc/passwd")
	f(exitWrongUse, "wrong_use", "list --nosuch")
	f(exitWrongUse, "wrong_use", "nosuch")
	f(exitWrongUse, "wrong_use", "get")
	f(exitWrongUse, "wrong_use", "list --config /no/such/file")
	f(exitWrongUse, "invalid_dsn", "list --dsn nonsense")
	f(exitWrongUse, wire.CodeInvalidTag, "save bad! x")
	for _, delay := range []string{"105851d", "106751d", "999999999d", "99999999999999999999d", "9999999h"} {
		e := f(exitWrongUse, wire.CodeDelayTooLong, "save t x --delay "+delay)
		if !strings.Contains(e.Message, "at most 105850d") {
			t.Errorf("%s: %s", delay, e.Message)
		}
	}
	if e := f(exitFailed, wire.CodeDuplicate, "save tag x --key k"); e.TaskID.String() != id {
		t.Errorf("the duplicate is %v", e.TaskID)
	}
}

func TestNoMessageShowsAPassword(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, dsn := range []string{
		"user:s3cret@tcp(127.0.0.1:1)/db", "mysql://user:s3cret@127.0.0.1:1/db", "user:s3cret@tcp(127.0.0.1:1",
		"user:s3cret@", "mysql://user:s3cret@127.0.0.1:x/db", "user:s3cret@tcp(127.0.0.1:1)/db?parseTime=x",
	} {
		for _, command := range [][]string{{"list"}, {"migrate", "up"}, {"demo"}, {"config", "print"}} {
			r := s.run(append(command, "--dsn", dsn)...)
			if strings.Contains(r.stderr+r.stdout, "s3cret") {
				t.Errorf("%v with %s wrote\n%s%s", command, dsn, r.stdout, r.stderr)
			}
		}
	}
}

func TestATypingErrorLeavesNoDatabaseBehind(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, command := range []string{"list", "stats", "nodes", "get 1", "cancel 1", "retry 1", "pause t",
		"migrate status", "migrate down", "token list", "token revoke a", "token create a --tags * --verbs all"} {
		s.run(strings.Fields(command)...)
	}
	for command, want := range map[string]string{
		"list --status waiting": strings.Join(statuses[:4], ", "), "get --nosuch": "--nosuch", "save bad! x": "bad!",
		"save t x --key s3:k": "s3:", "token create bad! --tags * --verbs all": "bad!",
	} {
		if r := s.run(strings.Fields(command)...); r.code != exitWrongUse || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: code %d, %s", command, r.code, r.stderr)
		}
	}
	found, err := filepath.Glob(strings.TrimPrefix(s.dsn, "sqlite:") + "*")
	if err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestAnInterruptedCommandFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	environ := []string{"DELAYTASK_DSN=" + newShell(t).dsn}
	a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, environ: environ}
	if code := a.run(ctx, []string{"save", "tag", "x"}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr.String(), "interrupted")
}

// interrupter ends a command once it has written the text.
type interrupter struct {
	strings.Builder
	text   string
	cancel func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	if n, err := w.Builder.Write(p); !strings.Contains(w.String(), w.text) || err != nil {
		return n, err
	}
	w.cancel()
	return len(p), nil
}

// changeMany cancels 1,200 tasks, and calls then once 500 of them are cancelled. It returns what the command says.
func changeMany(ctx context.Context, t *testing.T, s *shell, then func()) string {
	t.Helper()
	s.ok("migrate", "up")
	s.exec("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)" +
		" INSERT INTO delay_task_message (tag, message_body, delay_time) SELECT 't', 'x', 90000000 FROM n")
	stderr := &interrupter{text: " 500 of ", cancel: sync.OnceFunc(then)}
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr, watched: true,
		environ: []string{"DELAYTASK_DSN=" + s.dsn}}
	if code := a.run(ctx, []string{"cancel", "--tag", "t", "--yes"}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	return stderr.String()
}

func TestAnInterruptedBulkChangeTellsWhatIsDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := newShell(t)
	contains(t, changeMany(ctx, t, s, cancel), "cancelled 500 tasks, then: interrupted")
	contains(t, s.ok("audit"), "stopped")
}

func TestABulkChangeThatIsStoppedElsewhereSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	written := changeMany(t.Context(), t, s, func() {
		s.exec("UPDATE delay_task_audit SET stop_time = '2026-03-01 12:00:00.000000'")
		db, err := sql.Open("sqlite", strings.TrimPrefix(s.dsn, "sqlite:"))
		servertest.OK(t, err)
		defer db.Close()
		seen := map[string]bool{}
		servertest.Eventually(t, "the command has learned of it", func() bool {
			var at sql.NullString
			servertest.OK(t, db.QueryRowContext(t.Context(), "SELECT seen_time FROM delay_task_audit").Scan(&at))
			seen[at.String] = true
			return len(seen) > 3 // the last one came after the one that learned of it had acted
		})
	})
	contains(t, written, "cancelled 500 tasks, then: stopped; delaytask audit --action bulk.stop shows by whom")
}
