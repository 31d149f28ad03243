package main

import (
	"strings"
	"testing"
)

type bulkResult struct {
	Matched int
	Changed int
	DryRun  bool `json:"dry_run"`
}

func TestCancelByIDAndByKey(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	a, b := s.save("tag", "1"), s.save("tag", "2", "--key", "k")
	contains(t, s.ok("cancel", a), "Cancelled task "+a+".")
	r := s.run("cancel", a, b, "77", "--json") // it goes on after a task that cannot be
	if r.code != exitFailed {
		t.Errorf("code %d", r.code)
	}
	contains(t, r.stdout, `"items": [`, `"met": "pending"`, `"code": "finished"`,
		`"message": "get task 77: task not found`)
	contains(t, r.stderr, `"code":"partly_failed"`, "2 of 3 tasks were not cancelled")
	r = s.run("cancel", a, b, "77")
	contains(t, r.stderr, "task is finished", "task not found", "3 of 3 tasks were not cancelled")
	c := s.save("tag", "3", "--key", "k")
	contains(t, s.ok("cancel", "--tag", "tag", "--key", "k"), "Cancelled task with key")
	for _, id := range []string{b, c} {
		var v taskView
		if s.decode(&v, "get", id); v.Status != "cancelled" {
			t.Errorf("it is %s", v.Status)
		}
	}
}

func TestCancelByFilterCountsFirst(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for range 3 {
		s.save("tag", "x")
	}
	s.save("other", "x")
	var b bulkResult
	if s.decode(&b, "cancel", "--tag", "tag", "--dry-run"); b != (bulkResult{3, 0, true}) {
		t.Errorf("a dry run gave %+v", b)
	}
	contains(t, s.ok("cancel", "--tag", "tag", "--dry-run"), "3 pending tasks would be cancelled")
	contains(t, s.ok("cancel", "--tag", "tag", "--older", "24h", "--yes"), "No pending task matches")
	if r := s.run("cancel", "--tag", "other", "--yes"); r.code != exitDone || r.stderr != "" { // no terminal
		t.Errorf("a script got code %d and %q", r.code, r.stderr)
	}
	s.save("other", "x")
	if s.decode(&b, "cancel", "--tag", "tag", "--status", "pending", "--yes"); b != (bulkResult{3, 3, false}) {
		t.Errorf("it gave %+v", b)
	}
	contains(t, s.ok("list", "--status", "pending"), "other")
}

func TestABulkChangeSaysWhyATaskOfTheFutureIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("tag", "x", "--delay", "2d")
	s.exec("UPDATE delay_task_message SET create_time = datetime('now', '+8 hours') || '.000000'")
	for _, how := range []string{"--dry-run", "--yes"} {
		r := s.run("cancel", "--tag", "tag", how)
		contains(t, r.stdout, "No pending task matches.")
		contains(t, r.stderr, "Task "+id+" matches, but was left out: its create_time, ")
	}
	contains(t, s.ok("cancel", id), "Cancelled task")
}

func TestABulkChangeAsksAPerson(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("tag", "x")
	s.interactive, s.watched = true, true

	s.stdin = "n\n"
	r := s.run("cancel", "--tag", "tag")
	if r.code != exitFailed {
		t.Errorf("refused, and the code is %d", r.code)
	}
	contains(t, r.stderr, "Cancel 1 pending task? [y/N]", "nothing was changed")

	s.stdin = "" // the end of the input is no yes
	if r := s.run("cancel", "--tag", "tag"); r.code != exitFailed {
		t.Errorf("not answered, and the code is %d", r.code)
	}
	s.stdin = "y\n"
	r = s.run("cancel", "--tag", "tag")
	contains(t, r.stdout, "Cancelled 1 task.")
	contains(t, r.stderr, "["+strings.Repeat("#", barWidth)+"] 1 of 1")
	if r := s.run("cancel", "--tag", "tag", "--yes"); strings.Contains(r.stderr, "?") {
		t.Errorf("asked in spite of --yes: %s", r.stderr)
	}
}

func TestABulkChangeWithoutATerminalWantsYes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.save("tag", "x")
	s.serve("print", 1, errOnFire)
	for _, verb := range []string{"cancel", "retry"} {
		r := s.run(verb, "--older", "0s")
		if r.code != exitWrongUse || r.stdout != "" {
			t.Errorf("%s: code %d, printed %q", verb, r.code, r.stdout)
		}
		contains(t, r.stderr, "add --yes")
		contains(t, s.ok(verb, "--older", "0s", "--dry-run"), "1 ") // it is still there
	}
}

func TestRetryRunsFailedTasksAgain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ids := s.serve("print", 3, errOnFire)
	contains(t, s.ok("retry", ids[0]), "Retried task "+ids[0])
	if r := s.run("retry", ids[0]); r.code != exitFailed {
		t.Errorf("retried twice: code %d", r.code)
	}
	s.exec("UPDATE delay_task_message SET task_key = 'k' WHERE id = " + ids[1])
	s.save("print", "x", "--key", "k")
	contains(t, s.ok("retry", "--tag", "print", "--key", "k", "--yes"), "Retried 0 of 1 task.", "retry ID says why")
	s.exec("UPDATE delay_task_message SET task_key = NULL")
	var b bulkResult
	if s.decode(&b, "retry", "--status", "failed", "--tag", "print", "--yes"); b != (bulkResult{2, 2, false}) {
		t.Errorf("it gave %+v", b)
	}
	var v taskView
	if s.decode(&v, "get", ids[2]); v.Status != "pending" || v.Attempt != 0 || len(v.FailedAttempts) != 1 {
		t.Errorf("after the retry: %+v", v)
	}
}
