package main

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestBulkChangesOfAllProcessesAreListedAndStopped(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.ok("bulk", "list"), "There was no bulk change.")
	s.save("mail", "1", "--delay", "1h")
	s.ok("cancel", "--tag", "mail", "--yes")
	// Of other processes: one has died, one is under way, and one does not tell.
	s.exec("INSERT INTO delay_task_audit (create_time, who, action, tag, tasks, detail, seen_time) VALUES" +
		" ('2026-03-01 12:00:00.000000', 'bob', 'bulk.retry', 'a', 7, 'tag=a error=password=hunter2'," +
		" '2026-03-01 12:00:09.000000')," +
		" ('2026-03-02 12:00:00.000000', 'ann', 'bulk.cancel', 'a', 1200, 'tag=a', datetime('now') || '.000000')," +
		" ('2026-03-01 11:00:00.000000', '', 'bulk.cancel', '', NULL, 'late_by=1s', NULL)")
	out := s.ok("bulk", "list")
	contains(t, out, "ID", "done", "lost", "running", "unknown", "1,200", "bob", "to go on, run the command again",
		"late_by=1s")
	if strings.Contains(out, "hunter2") {
		t.Errorf("it shows a secret:\n%s", out)
	}
	contains(t, s.ok("bulk", "stop", "3"), "It stops within about a second")
	contains(t, s.ok("bulk", "list"), "stopping")
	contains(t, s.ok("bulk", "stop", "2"), "If it is alive, it stops")
	contains(t, s.ok("bulk", "stop", "1"), "It has ended before (done), with 1 task changed.")
	for id, code := range map[string]string{
		"4": wire.CodeBulkUntold, "77": wire.CodeBulkNotFound, "x": wire.CodeBulkNotFound,
	} {
		if r := s.run("bulk", "stop", id, "--json"); r.code != exitFailed || !strings.Contains(r.stderr, code) {
			t.Errorf("stop %s ends with %d: %s", id, r.code, r.stderr)
		}
	}
	var runs []wire.BulkRun
	s.items(&runs, "bulk", "list")
	if len(runs) != 4 || runs[0].Outcome != "done" || runs[0].Done != 1 || runs[0].Who != operator() ||
		!runs[1].Stopping {
		t.Errorf("got %+v", runs)
	}
	var entries []wire.AuditEntry
	s.items(&entries, "audit", "--action", "bulk.stop")
	if len(entries) != 4 || entries[3].Target != "3" || entries[0].Outcome != "refused" {
		t.Errorf("the audit log has %+v", entries)
	}
}
