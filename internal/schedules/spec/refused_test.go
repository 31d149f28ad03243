package spec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

func TestParseRefuses(t *testing.T) {
	berlin := delaytask.Spec{Zone: "Europe/Berlin"}
	for _, row := range []struct {
		lines string
		line  int
		d     delaytask.Spec
	}{
		// About the whole.
		{"!2027-12-24", 0, berlin},
		{"0 0 * * *\n!* * * * *", 0, berlin},
		{"0 0 * * *\n!* 0-11 * * *", 0, berlin},
		{"30 2 24 12 *\n0 9 24 12 *\n!* * 24 12 *", 0, berlin},
		{"@at 2027-12-24T09:00\n!2027-12-24", 0, berlin},
		{strings.TrimSuffix(strings.Repeat("0 0 * * *\n", 17), "\n"), 0, berlin},
		{"0 0 * * *", 0, delaytask.Spec{DST: "never"}},
		// Zones in lines.
		{"CRON_TZ=Europe/Berlin", 1, berlin},
		{"TZ=Local 0 0 * * *", 0, delaytask.Spec{}},
		{"TZ= 0 0 * * *", 1, delaytask.Spec{}},
		{"TZ=Asia/Tokyo 0 0 * * *", 1, berlin},
		{"TZ=Asia/Tokyo 0 0 * * *\nCRON_TZ=Europe/Berlin 0 0 * * *", 2, delaytask.Spec{}},
		// What never matches.
		{"0 0 30 2 *", 1, berlin},
		{"0 9 * * *\n0 0 31 2,4,6,9,11 *", 2, berlin},
		// Fields.
		{"", 1, berlin},
		{"0 0 * * *\n", 2, berlin},
		{", * * * *", 1, berlin},
		{"*/70 * * * *", 1, berlin},
		{"0 1-20/25 * * *", 1, berlin},
		{"0 0 * * 0-SUN", 1, berlin},
		{"0 0 * * SUN-SUN", 1, berlin},
		{"0 0 * * 7-sun/2", 1, berlin},
		{"1,,2 * * * *", 1, berlin},
		{"1, * * * *", 1, berlin},
		{"* * * *", 1, berlin},
		{"* * * * * * *", 1, berlin},
		{"60 * * * *", 1, berlin},
		{"60 * * * * *", 1, berlin},
		{"* 24 * * *", 1, berlin},
		{"* * 0 * *", 1, berlin},
		{"* * 32 * *", 1, berlin},
		{"* * * 0 *", 1, berlin},
		{"* * * 13 *", 1, berlin},
		{"* * * * 8", 1, berlin},
		{"* * * * 5-8", 1, berlin},
		{"-1 * * * *", 1, berlin},
		{"+1 * * * *", 1, berlin},
		{"5-1 * * * *", 1, berlin},
		{"1- * * * *", 1, berlin},
		{"1-2-3 * * * *", 1, berlin},
		{"*-5 * * * *", 1, berlin},
		{"** * * * *", 1, berlin},
		{"*/0 * * * *", 1, berlin},
		{"*/-1 * * * *", 1, berlin},
		{"*/ * * * *", 1, berlin},
		{"/5 * * * *", 1, berlin},
		{"1/2/3 * * * *", 1, berlin},
		{"99999999999999999999 * * * *", 1, berlin},
		{"١ * * * *", 1, berlin},
		{"L * * * *", 1, berlin},
		{"* * * * L", 1, berlin},
		{"* * 1-L * *", 1, berlin},
		{"JAN * * * *", 1, berlin},
		{"* * * MON *", 1, berlin},
		{"* * * * JAN", 1, berlin},
		{"* * * JANUARY *", 1, berlin},
		{"@reboot", 1, berlin},
		// Intervals, instants, excludes.
		{"@every", 1, berlin},
		{"@every -5m", 1, berlin},
		{"@every 0s", 1, berlin},
		{"@every 500ms", 1, berlin},
		{"@every 1500ms", 1, berlin},
		{"@every 24h/24h", 1, berlin},
		{"@every 24h/-1h", 1, berlin},
		{"@every 24h/500ms", 1, berlin},
		{"@every 24h/", 1, berlin},
		{"@every 300000000h", 1, berlin},
		{"@at", 1, berlin},
		{"@at 2027-02-30T09:00", 1, berlin},
		{"@at 2027-01-01", 1, berlin},
		{"@at 2027-01-01T09:00:00.5Z", 1, berlin},
		{"@at 1969-12-31T09:00:00Z", 0, berlin},
		{"0 9 * * *\n!", 2, berlin},
		{"0 9 * * *\n!2027-02-30", 2, berlin},
		{"0 9 * * *\n!60 * * * *", 2, berlin},
		{"0 9 * * *\n!@every 5m", 2, berlin},
	} {
		d := row.d
		d.Lines = strings.Split(row.lines, "\n")
		s, err := spec.Parse(d)
		problem, known := errors.AsType[*delaytask.SpecError](err)
		switch {
		case err == nil:
			t.Errorf("%q is parsed: %+v", row.lines, s.Definition())
		case !known:
			t.Errorf("%q: %T instead of *delaytask.SpecError: %v", row.lines, err, err)
		case problem.Line != row.line || problem.Reason == "":
			t.Errorf("%q: line %d, column %d: %v, want line %d", row.lines, problem.Line, problem.Column, err, row.line)
		case problem.Column < 0 || problem.Line == 0 && problem.Column != 0,
			problem.Line > 0 && problem.Column > len(d.Lines[problem.Line-1])+1:
			t.Errorf("%q: column %d: %v", row.lines, problem.Column, err)
		}
	}
	for _, line := range []string{"TZ=0", "CRON_TZ=Mars/Olympus 0 0 * * *"} {
		_, err := spec.Parse(delaytask.Spec{Lines: []string{line}})
		if _, ok := errors.AsType[*spec.ZoneError](err); !ok {
			t.Errorf("%q: %v", line, err)
		}
	}
	if _, err := spec.Parse(berlin); err == nil {
		t.Error("no lines are parsed")
	}
}

// TestErrorsPointAtTheField has the columns of what is wrong, so that a form can mark it.
func TestErrorsPointAtTheField(t *testing.T) {
	for line, columns := range map[string][]int{ // of the field, or of the item in it
		"0 24 * * *":       {3},
		"0 0 1,32 * *":     {5, 7},
		"TZ=UTC 0 0 * * 8": {16},
	} {
		_, err := spec.Parse(delaytask.Spec{Lines: []string{line}})
		problem, _ := errors.AsType[*delaytask.SpecError](err)
		if problem == nil || problem.Line != 1 || !slices.Contains(columns, problem.Column) {
			t.Errorf("%q: %#v, want column %v", line, err, columns)
		}
	}
}
