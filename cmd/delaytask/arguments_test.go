package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

func TestMaxLatenessIsADurationAndAPolicy(t *testing.T) {
	t.Parallel()
	f := func(s string, want time.Duration, policy delaytask.LatePolicy) {
		t.Helper()
		if got, err := parseMaxLateness(s); err != nil || got != (lateLimit{want, policy}) {
			t.Errorf("%q gave %v, %v", s, got, err)
		}
	}
	f("10m:skip", 10*time.Minute, delaytask.LateSkip)
	f("1d12h:fail", 36*time.Hour, delaytask.LateFail)
	f("0s:run", 0, delaytask.LateRun)
}

func TestTimesMayBeLocalOrSoLongAgo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.save("t", "x", "--at", "2027-01-31 08:30")
	for args, want := range map[string]string{
		"--newer|2027-01-31":          id,
		"--newer|2027-01-31 08:30":    id,
		"--newer|2027-01-31 08:30:01": "",
		"--older|2027-02-01":          id,
		"--older|2027-01-31T08:30":    "",
		"--newer|1h":                  id,
		"--older|1h":                  "",
		"--newer|00:00":               id,
	} {
		var tasks []taskView
		if s.items(&tasks, append([]string{"list", "--tag", "t"}, strings.Split(args, "|")...)...); len(tasks) > 0 !=
			(want != "") {
			t.Errorf("list %s has %d tasks", args, len(tasks))
		}
	}
	for _, args := range []string{
		"list --older yesterday", "cancel --newer 2027-02-30 --dry-run", "retry --older  --dry-run",
		"stats --since 2999-01-01", "token create a --tags * --verbs read --expires 2020-01-01", "save t x --at noon",
	} {
		r := s.run(strings.Split(args, " ")...)
		told := strings.Contains(r.stderr, "want a") || strings.Contains(r.stderr, "never be good")
		if r.code != exitWrongUse || !told {
			t.Errorf("%s ends with %d: %s", args, r.code, r.stderr)
		}
	}
	contains(t, s.run("list", "--older", "yesterday").stderr, "--older: want a duration such as 30s, 1h30m or 7d, or "+
		"a time such as 2027-01-31, '2027-01-31 08:30', 08:30 (today) or 2027-01-31T08:30:00Z; got \"yesterday\"")
	at := time.Date(2999, 1, 1, 0, 0, 0, 0, time.Local)
	contains(t, s.run("token", "create", "a", "--tags", "*", "--verbs", "read", "--expires", "2999-01-01").stderr,
		"good until "+moment(at))
	contains(t, s.ok("stats", "--since", "2026-01-01"), "all tags, by the hour from ")
}

func TestHeadersMayHoldEqualsSignsAndTheLastOneCounts(t *testing.T) {
	t.Parallel()
	got, err := parseHeaders([]string{"a=1", "b=", "c=x=y", "a=2"})
	if err != nil || !maps.Equal(got, map[string]string{"a": "2", "b": "", "c": "x=y"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// Malformed input is a wrong use, and a value means the same when it is written again.
func FuzzArguments(f *testing.F) {
	for _, seed := range append(statuses, "", "Pending", "waiting", "1", "0", "-1", "+1", "0x10", "9223372036854775808",
		"10m:skip", "1d:run", "::skip", "-1s:run", "9999999999h:fail", "a=b", "=", "a=b=c", "é=ü",
		"2027-01-31T08:30:00.250+02:00", "2027-02-30T08:30:00Z", "2027-01-31T24:00:00Z",
		"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999999-23:59") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		read := func(err error) bool {
			if err != nil && exitCode(err) != exitWrongUse {
				t.Fatalf("%q: %v is no wrong use", s, err)
			}
			return err == nil
		}
		flags := new(app).saveCommand().Flags()
		if late, err := parseMaxLateness(s); read(flags.Set("max-lateness", s)) {
			again, err2 := parseMaxLateness(wire.FormatDuration(late.after) + ":" + wire.LatePolicy(late.policy))
			if late.after < 0 || again != late || err != nil || err2 != nil {
				t.Errorf("%q gave %v, %v; written again %v, %v", s, late, err, again, err2)
			}
		}
		if headers, err := parseHeaders([]string{s}); read(err) {
			for name, value := range headers {
				if name == "" || name+"="+value != s {
					t.Errorf("%q gave %q = %q", s, name, value)
				}
			}
		}
		at, err := parseTime(s)
		year := at.UTC().Year() // a zone can lead to a year that has no such form
		if read(flags.Set("at", s)) && err == nil && year >= 0 && year <= 9999 {
			if again, err := parseTime(at.UTC().Format(time.RFC3339Nano)); err != nil || !again.Equal(at) {
				t.Errorf("%q gave %v; written again %v, %v", s, at, again, err)
			}
		}
		if status, err := parseStatus(s); read(err) && (string(status) != s || s != "" &&
			!slices.Contains(statuses, s)) {
			t.Errorf("%q was taken as %q", s, status)
		}
		if n, err := parseID(s); read(err) && n <= 0 {
			t.Errorf("%q gave %d", s, n)
		}
	})
}

func TestFiguresAreForPeople(t *testing.T) {
	t.Parallel()
	for _, f := range [][2]string{
		{span(0), "0s"}, {span(1500 * time.Microsecond), "1ms"}, {span(1500 * time.Millisecond), "1.5s"},
		{span(90 * time.Second), "1m30s"}, {span(30 * time.Minute), "30m"},
		{span(25*time.Hour + 59*time.Minute), "1d1h"},
		{span(-time.Minute), "-1m"}, {lateness(1234 * time.Microsecond), "1.2 ms"},
		{lateness(3 * time.Second), "3000.0 ms"}, {lateness(time.Minute), "60.0 s"},
		{grouped(0), "0"}, {grouped(999), "999"}, {grouped(1000), "1,000"}, {grouped(1234567), "1,234,567"},
	} {
		if f[0] != f[1] {
			t.Errorf("got %s, want %s", f[0], f[1])
		}
	}
}

func TestTheBarWritesAtMostTenTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := (&app{stderr: &out, watched: true}).newBar(1000, false, time.Now)
		for done := range 1000 {
			b.set(done)
			time.Sleep(time.Millisecond)
		}
		b.set(1000)
		b.end()
		if n := strings.Count(out.String(), "\r"); n != 11 {
			t.Errorf("it was drawn %d times", n)
		}
		contains(t, out.String(), "] 500 of 1,000", "#] 1,000 of 1,000"+eraseRest+"\n")
	})
}

func TestTheBarKnowsThatMoreMayMatchThanWereCounted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := (&app{stderr: &out, watched: true}).newBar(300, true, time.Now)
	b.set(500)
	contains(t, out.String(), "#] 500 of at least 500")
}
