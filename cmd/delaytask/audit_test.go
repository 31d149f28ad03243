package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

func TestChangingCommandsAreRecorded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	save := func(tag string) string { return strings.TrimSpace(s.ok("save", tag, "1", "--delay", "1h")) }
	first, second, other := save("t"), save("t"), save("u")
	const from, to = "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"
	var want []string
	for _, c := range []struct {
		args string
		want []string
	}{
		{"reschedule " + first + " --delay 2h", []string{"task.reschedule " + first + " t 1 done delay=2h0m0s"}},
		{"reschedule " + first + " --at " + from, []string{"task.reschedule " + first + " t 1 done at=" + from}},
		{"cancel " + first + " " + other,
			[]string{"task.cancel " + first + " t 1 done", "task.cancel " + other + " u 1 done"}},
		{"cancel 424242", nil}, // it is not there
		{"retry " + second, []string{"task.retry " + second + " t 0 refused"}},
		{"cancel --tag t --dry-run", nil}, {"cancel --tag t --yes", []string{"bulk.cancel  t 1 done tag=t as_of=*"}},
		{"retry --tag t --yes", nil}, // nothing matches
		{"pause t u", []string{"tag.pause  t 0 done", "tag.pause  u 0 done"}},
		{"resume t", []string{"tag.resume  t 0 done"}}, {"list", nil}, {"explain " + first, nil},
		{"schedule create s @yearly --tag t", []string{"schedule.save s t 0 done @yearly"}},
		{"schedule update s @daily --zone Europe/Berlin", []string{"schedule.save s t 0 done @daily in Europe/Berlin"}},
		{"schedule pause s --reason moves", []string{"schedule.pause s t 0 done moves"}},
		{"schedule resume s", []string{"schedule.resume s t 0 done"}},
		{"schedule reset s", []string{"schedule.reset s t 0 done"}},
		{"schedule skip s", []string{"schedule.skip s t 0 done"}},
		{"schedule trigger s --beside", []string{"schedule.run s t 0 done beside"}},
		{"schedule backfill s --from " + from + " --to " + to,
			[]string{"schedule.backfill s t 0 refused from=" + from + " to=" + to}},
		{"schedule delete s --yes", []string{"schedule.delete s t 0 done"}},
		{"token create ci --tags a,b.* --verbs read", []string{"token.create ci  0 done verbs=read tags=a,b.*"}},
		{"token revoke ci", []string{"token.revoke ci  0 done"}},
	} {
		if r := s.run(strings.Fields(c.args)...); r.code == exitWrongUse && !strings.Contains(c.args, "backfill") {
			t.Fatalf("%s: %s", c.args, r.stderr)
		}
		want = append(want, c.want...)
	}
	var entries []wire.AuditEntry
	s.items(&entries, "audit")
	slices.Reverse(entries)
	var got []string
	for _, e := range entries {
		detail, _, cut := strings.Cut(e.Detail, "as_of=")
		if cut {
			detail += "as_of=*"
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s %s", e.Action, e.Target, e.Tag, e.Tasks,
			e.Outcome, detail)))
		if e.Who != operator() || e.Via != "command" || !strings.Contains(e.Who, "@") {
			t.Errorf("got %+v", e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	s.items(&entries, "audit", "--tag", "u", "--action", "tag.pause", "--who", operator())
	if len(entries) != 1 {
		t.Errorf("got %+v", entries)
	}
}

func TestTheAuditLogIsShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.ok("audit"), "There is no such entry.")
	s.exec("INSERT INTO delay_task_audit (create_time, who, via, action, target, outcome, tasks, error, finish_time)" +
		" VALUES ('2027-01-31 08:30:00', 'shop', 'api', 'task.cancel', '7', 'refused', 0, 'not\x1b found'," +
		" '2027-01-31 08:30:00'), ('2027-01-31 08:31:00', 'me@host', 'command', 'bulk.cancel', '', '', NULL, '', NULL)")
	contains(t, s.ok("audit"), "OUTCOME", "refused", `not\x1b found`, "under way, or its process died")
	r := s.run("audit", "--limit", "1")
	contains(t, r.stderr, "add --before 2")
	contains(t, s.ok("audit", "--limit", "1", "--before", "2"), "task.cancel")
	for _, args := range [][]string{{"--limit", "0"}, {"--before", "-1"}, {"--before", "x"}, {"extra"}} {
		if r := s.run(append([]string{"audit"}, args...)...); r.code != exitWrongUse {
			t.Errorf("%q ends with %d: %s", args, r.code, r.stderr)
		}
	}
	s.exec("DROP TABLE delay_task_audit")
	if r := s.run("audit"); r.code != exitFailed || !strings.Contains(r.stderr, "delaytask migrate up") {
		t.Errorf("code %d: %s", r.code, r.stderr)
	}
}
