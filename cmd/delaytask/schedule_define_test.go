package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// shown is what a schedule command prints in JSON.
type shown struct {
	wire.Schedule
	Body     string `json:"body"`
	Ticks    []wire.Tick
	Warnings []string
	History  []wire.ScheduleTick
}

func TestATickThatWasSkippedAheadIsNotListed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedule", "create", "a", "@yearly", "--zone", "UTC", "--start", "2039-06-01", "--tag", "t")
	contains(t, s.ok("schedule", "skip", "a"), "The tick of 2040-01-01T00:00:00.000Z does not run.")
	contains(t, s.ok("schedule", "update", "a", "0 0 1 1,7 *"), "2039-07-01", "2040-07-01", "2041-01-01")
	contains(t, s.ok("schedule", "explain", "a", "--tick", "2040-01-01"), "It does not run: skipped by an operator.")
}

func TestTimesOfAScheduleAreOfItsZone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("schedule", "create", "a", "30 2 * * *", "--zone", "Asia/Kathmandu", "--start", "2040-01-01", "--tag", "t")
	for _, tt := range [][2]string{
		{"show|a", "2040-01-01T02:30:00.000+05:45, in "},
		{"list", "2040-01-01T02:30:00.000+05:45"},
		{"explain|a", "Its next tick is 2040-01-01T02:30:00.000+05:45."},
		{"explain|a|--tick|2040-01-02 02:30", "It is to come"},
		{"explain|a|--tick|2040-01-02 03:30", "one at 2040-01-02T02:30:00.000+05:45 and"},
		{"skip|a", "The tick of 2040-01-01T02:30:00.000+05:45 does not run."},
		{"ticks|a", "2040-01-01T02:30:00.000+05:45"},
		{"ticks|a|--before|2040-01-01 02:30", "No tick was decided."},
		{"ticks|a|--before|2040-01-01 02:31", "2040-01-01T02:30:00.000+05:45"},
		{"reset|a", "It runs next at 2040-01-01T02:30:00.000+05:45, in "},
		{"update|a|--start|2041-01-01", "2041-01-01 02:30 +05:45"},
	} {
		contains(t, s.ok(append([]string{"schedule"}, strings.Split(tt[0], "|")...)...), tt[1])
	}
	run := strings.TrimSpace(s.ok("schedule", "trigger", "a"))
	contains(t, s.ok("get", run), "+05:45 (manual)")
	contains(t, s.ok("schedule", "explain", "a", "--json"), `"next_tick": "2040-12-31T20:45:00.000Z"`)
}

func TestScheduleIsDefinedAndChanged(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var created, updated, now shown
	s.decode(&created, "schedule", "create", "report/daily", "30 2 1 2 *", "--zone", "Europe/Berlin", "--dst", "skip",
		"--except", "2031-02-01", "--end", "2030-01-01T00:00:00Z", "--tag", "report.build", "--body", `{"n":1}`,
		"--app", "shop", "--ttr", "20s", "--max-attempts", "3", "--priority", "4", "--header", "a=b", "--overlap",
		"allow", "--max-open", "5", "--missed", "all", "--start-within", "6h", "--jitter", "7m", "--pause-after", "8",
		"--max-runs", "9", "--keep-runs", "10", "--retry-past-next")
	if c := &created; c.Zone != "Europe/Berlin" || c.DST != "skip" || len(c.Lines) != 2 || c.End == nil ||
		c.Tag != "report.build" || c.Body != `{"n":1}` || c.App != "shop" || c.TTRMS != 20_000 || c.MaxAttempts != 3 ||
		c.Priority != 4 || c.Headers["a"] != "b" || c.Overlap != "allow" || c.MaxOpen != 5 || c.Missed != "all" ||
		c.StartWithinMS != 6*3_600_000 || c.JitterMS != 7*60_000 || c.PauseAfter != 8 || c.MaxRuns != 9 ||
		c.KeepRuns != 10 || !c.RetryPastNext || len(c.Ticks) == 0 || c.Ticks[0].Time != c.NextTick {
		t.Errorf("created %+v", c)
	}
	if r := s.run("schedule", "create", "report/daily", "@daily", "--tag", "t", "--json"); r.code != exitFailed ||
		!strings.Contains(r.stderr, `"schedule_exists"`) {
		t.Errorf("created twice: %d, %s", r.code, r.stderr)
	}
	var ends, endless shown
	s.decode(&ends, "schedule", "create", "endless", "@yearly", "--end", "2100-01-01", "--tag", "t")
	if s.decode(&endless, "schedule", "update", "endless", "--end", ""); ends.End == nil || endless.End != nil {
		t.Errorf("it ends at %v", endless.End)
	}
	s.ok("schedule", "delete", "endless", "--yes")
	for args, want := range map[string]string{
		"@daily --if-version 1": `"schedule_changed"`, "@daily --if-version -1": "_option",
	} {
		r := s.run(append([]string{"schedule", "update", "report/daily", "--json"}, strings.Fields(args)...)...)
		if r.code == exitDone || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %d, %s", args, r.code, r.stderr)
		}
	}
	r := s.run("schedule", "create", "utc", "30 2 * * *", "--tag", "t")
	if !strings.Contains(r.stderr, "no zone is given") {
		t.Errorf("without a zone: %s", r.stderr)
	}
	s.run("schedule", "delete", "utc", "--yes")
	s.decode(&updated, "schedule", "update", "report/daily", "--overlap", "replace", "--header", "c=d", "--except",
		"2032-02-01")
	want := created.Schedule
	want.Lines, want.Overlap, want.MaxOpen, want.Version = updated.Lines, "replace", 0, 1
	want.Headers, want.Created, want.Updated = updated.Headers, updated.Created, updated.Updated
	if got := updated.Schedule; len(got.Lines) != 3 || len(got.Headers) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("updated\n%+v\nwant\n%+v", got, want)
	}
	for _, tt := range []struct{ args, says string }{
		{"update report/daily @yearly --zone UTC --end 2100-01-01T00:00:00Z",
			"Updated report/daily. Its next ticks:\nLOCAL"},
		{"update report/daily --priority 5 --if-version 2", "Updated report/daily."},
		{"pause report/daily --reason moving", "Paused report/daily."},
		{"update report/daily --missed once", "It is paused."},
		{"show report/daily", "paused: moving"},
		{"list --prefix report/", "report/daily  paused  report.build  @yearly UTC"},
		{"list --prefix x", "No schedule matches."},
		{"ticks report/daily", "No tick was decided."},
		{"resume report/daily", "Resumed report/daily. It runs next at "},
		{"reset report/daily", "Reset report/daily. It runs next at "},
		{"skip report/daily", "-01-01T00:00:00.000Z does not run."},
		{"ticks report/daily", "skipped by an operator"},
		{"backfill report/daily --from 2020-01-01T00:00:00Z --to 2024-01-01T00:00:00Z", "report/daily/backfill/"},
	} {
		if r := s.run(append([]string{"schedule"}, strings.Fields(tt.args)...)...); r.code != exitDone ||
			!strings.Contains(strings.ReplaceAll(r.stdout, "0 0 1 1 *", "@yearly"), tt.says) {
			t.Errorf("%s: %d, %s%s", tt.args, r.code, r.stdout, r.stderr)
		}
	}
	id := strings.TrimSpace(s.ok("schedule", "trigger", "report/daily"))
	contains(t, s.ok("get", id), "report/daily, tick of ")
	s.decode(&now, "schedule", "show", "report/daily")
	if now.RunID.String() != id || len(now.History) != 2 || now.History[1].TaskID != now.RunID &&
		now.History[0].TaskID != now.RunID {
		t.Errorf("shows %+v", now)
	}
	var all []shown
	if next := s.items(&all, "schedule", "list", "--limit", "1"); next != "report/daily" || len(all) != 1 {
		t.Errorf("a page of %+v, then %q", all, next)
	}
	s.interactive, s.stdin = true, "n\n"
	if r := s.run("schedule", "delete", "report/daily"); r.code != exitFailed {
		t.Errorf("deleted without a yes: %s", r.stdout)
	}
	s.stdin = "y\n"
	s.ok("schedule", "delete", "report/daily")
	contains(t, s.ok("schedule", "list"), "No schedule matches.")
	for _, args := range []string{"show", "ticks", "pause", "resume", "reset", "skip", "trigger", "delete --yes",
		"update --missed all"} {
		verb, more, _ := strings.Cut(args, " ")
		r := s.run(append([]string{"schedule", verb, "report/daily"}, strings.Fields(more)...)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, "delaytask schedule list shows what there is") {
			t.Errorf("%s: %d, %s", args, r.code, r.stderr)
		}
	}
}
