package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/wire"
)

// berlin runs a preview on a database that cannot be.
func berlin(t *testing.T, args ...string) result {
	t.Helper()
	s := newShell(t)
	s.dsn = "nonsense"
	s.environ = []string{"DELAYTASK_CONFIG=/no/such/file"}
	return s.run(append([]string{"schedule", "preview", "--zone", "Europe/Berlin"}, args...)...)
}

func TestSchedulePreviewShowsClockChanges(t *testing.T) {
	t.Parallel()
	columns := func(r result) (lines []string) {
		if r.code != exitDone || r.stderr != "" {
			t.Errorf("code %d, %s", r.code, r.stderr)
		}
		for line := range strings.Lines(r.stdout) {
			fields := strings.Fields(line)
			if len(fields) > 7 { // but how far away it is
				fields = append(fields[:7], fields[8:]...)
			}
			lines = append(lines, strings.Join(fields, " "))
		}
		return lines
	}
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"--after 2027-03-27T00:00:00Z --end 2027-03-29T00:00:00Z", []string{"LOCAL UTC IN NOTE",
			"Sat 2027-03-27 02:30 CET +01:00 2027-03-27 01:30 -",
			"Sun 2027-03-28 03:00 CEST +02:00 2027-03-28 01:00 moved: 02:30 does not exist",
			"There is no later tick."}},
		{"--after 2027-03-27T12:00:00Z --dst skip -n 1 --except 2027-03-29", []string{"LOCAL UTC IN NOTE",
			"Sun 2027-03-28 03:00 CEST +02:00 2027-03-28 01:00 does not run: 02:30 does not exist",
			"Tue 2027-03-30 02:30 CEST +02:00 2027-03-30 00:30 -"}},
		{"--after 2027-10-30T12:00:00Z --dst both -n 2", []string{"LOCAL UTC IN NOTE",
			"Sun 2027-10-31 02:30 CEST +02:00 2027-10-31 00:30 first pass of 02:30",
			"Sun 2027-10-31 02:30 CET +01:00 2027-10-31 01:30 second pass of 02:30"}},
		{"--end 1990-01-01T00:00:00Z", []string{"There is no later tick."}},
	} {
		got := columns(berlin(t, append(strings.Fields(tt.args), "30 2 * * *")...))
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s:\n%s", tt.args, strings.Join(got, "\n"))
		}
	}
}

func TestSchedulePreviewWarnsBelow(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("schedule", "preview", "30 2 1 * MON", "-n", "1")
	if r.code != exitDone || strings.Count(r.stderr, "delaytask: warning: ") != 2 {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	contains(t, r.stderr, "in UTC", "--zone Europe/Berlin", "day of the month or the day of the week")
	var got wire.Ticks
	r = s.run("schedule", "preview", "30 2 1 * MON", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || len(got.Ticks) != 20 || len(got.Warnings) != 2 ||
		r.stderr != "" {
		t.Errorf("%v in %s, %s", err, r.stdout, r.stderr)
	}
}

func TestSchedulePreviewPointsAtTheMistake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args  []string
		below string // the sentence
	}{
		{[]string{"30 25 * * *"}, "  30 25 * * *\n     ^\n"},
		{[]string{"@daily", " 0 日 * * *"}, "   0 日 * * *\n     ^\n"},
		{[]string{"0 \x1b2 * * *"}, "  0 \\x1b2 * * *\n    ^\n"},
		{[]string{"日 0 \xff * * *"}, "  日 0 \\xff * * *\n  ^\n"},
		{[]string{"@daily", "--except", "2027-13-01"}, "  !2027-13-01\n   ^\n"},
		{[]string{strings.Repeat("x", 16<<10)}, ""},
		{[]string{"30", "2", "*", "*", "*"}, ""},
		{[]string{"@daily", "-n", "1000000000"}, ""},
		{[]string{"@daily", "--dst", "twice"}, ""},
		{[]string{"@daily", "--zone", "../../etc/passwd"}, ""},
		{[]string{"@daily", "--zone", "Local"}, ""},
		{[]string{"@daily", "--after", "tomorrow"}, ""},
		{[]string{"@daily", "--end", "0001-01-01T00:00:00Z"}, ""},
		{nil, ""},
	} {
		r := berlin(t, tt.args...)
		sentence, below, _ := strings.Cut(r.stderr, "\n")
		below, see := strings.CutSuffix(below, "See: delaytask schedule preview --help\n")
		if r.code != exitWrongUse || r.stdout != "" || !see || below != tt.below || len(sentence) > 300 {
			t.Errorf("%.60q: code %d\n%s%s", tt.args, r.code, r.stdout, r.stderr)
		}
	}
	r := berlin(t, "@daily", "30 25 * * *", "--json")
	var said map[string]failure
	if err := json.Unmarshal([]byte(r.stderr), &said); err != nil {
		t.Fatal(err)
	}
	if e := said["error"]; e.Code != wire.CodeInvalidSpec || e.Line != 2 || e.Column != 4 {
		t.Errorf("%+v", e)
	}
}

func TestSchedulePreviewThatEndsEarlyDoesNotSayThatNoTickIsLater(t *testing.T) {
	t.Parallel()
	args := []string{"schedule", "preview", "--zone", "Europe/Berlin", "--after", "2026-11-24T00:00:00Z",
		"1 0 0 29 2 *", "5 * * * *", "!0 * * * * *"}
	for _, days := range []string{"1/2 * *", "2/4,3/4 * *", "4-7,12-15,20-23,28-31 * *", "8-15,24-31 * *", "16-31 * *",
		"* * 1/2", "* * 2,3,6", "* * 4-6", "* 1/2 *", "* 2/4,3/4 *", "* 4-7,12 *", "* 8-12 *"} {
		args = append(args, "!0 * * "+days)
	}
	r := newShell(t).run(args...)
	if r.code != exitDone || strings.Contains(r.stdout, "no later tick") {
		t.Errorf("code %d: %s", r.code, r.stdout)
	}
	contains(t, r.stderr, "the search for ticks ended early")
}
