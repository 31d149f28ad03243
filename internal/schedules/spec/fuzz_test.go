package spec_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// FuzzParse has lines, a zone, a rule and a moment to ask at. A line that parses must answer soon, and keeps its laws.
func FuzzParse(f *testing.F) {
	apia := time.Date(2011, 12, 29, 0, 0, 0, 0, time.UTC).Unix()
	for _, seed := range []struct {
		lines, zone string
		after       int64
	}{
		// Other parsers take these, panic on them, or search without end.
		{"TZ=0", "", 0},
		{"CRON_TZ=Europe/Berlin", "", 0},
		{", * * * *", "", 0},
		{"0 0 30 2 *", "", 0},
		{"@every -5m", "", 0},
		{"@every 500ms", "", 0},
		{"0 0 29 2 *", "Europe/Berlin", time.Date(2096, 2, 29, 0, 0, 0, 0, time.UTC).Unix()},
		{"0 0 * * 0", "Pacific/Apia", apia},
		{"0 0 30 12 *\n0 0 * * FRI", "Pacific/Apia", apia},
		{"0 0 * * *\n!* * * * *", "", 0},
		// Excludes that leave little or nothing.
		{"* * * * * *" + excludes("!N-59/15 * * * * *"), "Europe/Berlin", 0},
		{"* * * * * *" + excludes("!* N-59/16 * * * *"), "Europe/Berlin", 0},
		{"* * * * * *" + excludes("!* * N-31/15 * * *"), "America/Havana", 0},
		{"0 0 29 2 *\n!* * * * 1-6", "Australia/Lord_Howe", 4e9},
		{"@every 1s\n!0-58 * * * * *\n!* 0-58 * * * *\n!* * 0-22 * * *\n!* * * * 1-11 *\n!* * * * * 1-6", "", 0},
		{"@every 1m\n!0 * * * 1-11 *", "", 0},
		{"@every 86399s\n!* 1-23 * * *\n!1-59 0 * * *", "America/Havana", 0},
		{"@every 24h/2h\n@at 2027-03-28T02:30\n@at 2027-01-01T09:00:00Z\n30 2 L * FRI-SUN", "Europe/Berlin", 1e9},
		{"CRON_TZ=Asia/Tokyo @daily\n!2027-12-24", "", 2e9},
	} {
		for rule := range byte(4) {
			f.Add(seed.lines, seed.zone, rule, seed.after)
		}
	}
	f.Fuzz(func(t *testing.T, lines, zone string, rule byte, after int64) {
		d := delaytask.Spec{Lines: strings.Split(lines, "\n"), Zone: zone, DST: rules[rule%4]}
		var s *spec.Spec
		var err error
		soon(t, "Parse", d, func() { s, err = spec.Parse(d) })
		if err != nil {
			return
		}
		canonical := s.Definition()
		again, err := spec.Parse(canonical)
		if err != nil {
			t.Fatalf("%q: the canonical form %q is refused: %v", lines, canonical.Lines, err)
		}
		if got := again.Definition(); fmt.Sprint(got) != fmt.Sprint(canonical) {
			t.Fatalf("%q: the canonical form of %v is %v", lines, canonical, got)
		}
		at := time.Unix(after%3e11, 0) // to the years -7500 and 11500
		var next, previous time.Time
		soon(t, "Next", d, func() { next = s.Next(at) })
		soon(t, "Prev", d, func() { previous = s.Prev(at) })
		if !next.IsZero() && (!next.After(at) || s.Prev(next.Add(1)) != next || s.Prev(next).After(at)) {
			t.Fatalf("%q: Next of %v is %v", lines, at, next)
		}
		if !previous.IsZero() && (!previous.Before(at) || s.Next(previous.Add(-1)) != previous) {
			t.Fatalf("%q: Prev of %v is %v", lines, at, previous)
		}
		if !again.Next(at).Equal(next) || !again.Prev(at).Equal(previous) {
			t.Fatalf("%q: the canonical form %q has other ticks at %v", lines, canonical.Lines, at)
		}
	})
}

// excludes writes 15 lines, with the numbers from 1 for N.
func excludes(line string) (lines string) {
	for i := range 15 {
		lines += "\n" + strings.ReplaceAll(line, "N", strconv.Itoa(i+1))
	}
	return lines
}

// soon fails when each of five calls takes longer than 10 ms. A test that does not fuzz grants seconds, because its
// machine may stand still.
func soon(t *testing.T, what string, d delaytask.Spec, call func()) {
	t.Helper()
	limit := 5 * time.Second
	if flag.Lookup("test.fuzz").Value.String() != "" {
		limit = 10 * time.Millisecond
	}
	var took time.Duration
	for range 5 {
		began := time.Now()
		call()
		if took = time.Since(began); took < limit {
			return
		}
	}
	t.Fatalf("%s of %+v takes %v", what, d, took)
}
