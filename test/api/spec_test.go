package api

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/scheduler"
)

type preview = func(delaytask.Spec, time.Time, int) ([]delaytask.Tick, []string, error)

func TestSpecsAndWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	t.Run("library", func(t *testing.T) { specs(t, scheduler.Preview) })
	t.Run("client", func(t *testing.T) {
		c := dial(t, serve(t))
		specs(t, func(s delaytask.Spec, after time.Time, n int) ([]delaytask.Tick, []string, error) {
			return c.Preview(t.Context(), s, after, n)
		})
	})
}

func specs(t *testing.T, preview preview) {
	t.Helper()
	after := time.Date(2027, 3, 27, 23, 59, 59, 900, time.UTC)
	spec := func(lines ...string) delaytask.Spec { return delaytask.Spec{Lines: lines} }
	in := func(s delaytask.Spec, zone string) delaytask.Spec { s.Zone = zone; return s }
	for _, tt := range []struct {
		spec delaytask.Spec
		want string // the first two ticks
	}{
		{delaytask.Cron("0 */12 * * *", ""), "2027-03-28T00:00:00Z 2027-03-28T12:00:00Z"},
		{delaytask.Every(36 * time.Hour), "2027-03-28T12:00:00Z 2027-03-30T00:00:00Z"},
		{delaytask.At(after), "2027-03-28T00:00:00Z"},
		{delaytask.At(after.Truncate(time.Second)), ""},
		{spec("0 0 * * *").Except("2027-03-28", "!* * 29 * *"), "2027-03-30T00:00:00Z 2027-03-31T00:00:00Z"},
		{spec("TZ=Asia/Tokyo 0 9 L * *"), "2027-03-31T09:00:00+09:00 2027-04-30T09:00:00+09:00"},
		{delaytask.Spec{Lines: []string{"@daily"}, End: after.Add(time.Hour)}, "2027-03-28T00:00:00Z"},
		{delaytask.Spec{Lines: []string{"@daily"}, Start: time.Date(2027, 3, 28, 0, 0, 0, 1, time.UTC),
			End: time.Date(2027, 3, 29, 23, 59, 59, 999_999_999, time.UTC)}, "2027-03-29T00:00:00Z"},
	} {
		ticks, _, err := preview(tt.spec, after, 2)
		var got []string
		for _, tick := range ticks {
			got = append(got, tick.Time.Format(time.RFC3339))
		}
		if strings.Join(got, " ") != tt.want || err != nil {
			t.Errorf("%q: %v, %v", tt.spec.Lines, got, err)
		}
	}
	for _, tt := range []struct {
		spec         delaytask.Spec
		line, column int
		reason       string
	}{
		{spec(), 0, 0, "no line"},
		{spec("@daily", "0 0 * * MON-FRY"), 2, 9, "day of week"},
		{spec("@daily", strings.Repeat("1", 16<<10)), 2, 0, "longer than"},
		{spec(make([]string, 17)...), 0, 0, "too many"},
		{spec("0 0 \x00 * *"), 1, 5, "no meaning"},
		{spec("0 0 * * \xff"), 1, 9, "no meaning"},
		{spec("@at 10000-01-01T00:00:00Z"), 1, 5, "is not a time"},
		{delaytask.Every(500 * time.Millisecond), 1, 8, "whole number"},
		{in(spec("@daily"), "Local"), 0, 0, "depends on the machine"},
		{in(spec("@daily"), "../../etc/passwd"), 0, 0, "unknown time zone"},
		{in(spec("TZ=UTC @daily"), "Asia/Tokyo"), 1, 0, "two zones"},
		{delaytask.Spec{Lines: []string{"@daily"}, DST: "twice"}, 0, 0, "dst"},
		{delaytask.Spec{Lines: []string{"@daily"}, End: time.Unix(0, 0)}, 0, 0, "end is before"},
	} {
		_, _, err := preview(tt.spec, after, 1)
		wrong, ok := errors.AsType[*delaytask.SpecError](err)
		if !ok || !errors.Is(err, delaytask.ErrInvalidSpec) || wrong.Line != tt.line || wrong.Column != tt.column ||
			!strings.Contains(wrong.Reason, tt.reason) {
			t.Errorf("%.40q: %v", tt.spec.Lines, err)
		}
	}
	ticks, warnings, err := preview(in(spec("30 2 1 * SUN", "30 2 * * SUN"), "Europe/Berlin"), after, 1)
	if len(ticks) != 1 || ticks[0].Note != "moved: 02:30 does not exist" || len(warnings) != 1 || err != nil {
		t.Errorf("%+v, %q, %v", ticks, warnings, err)
	}
	skip := in(spec("30 2 * * *"), "Europe/Berlin")
	skip.DST = delaytask.DSTSkip
	ticks, _, err = preview(skip, after, 1)
	if len(ticks) != 2 || !ticks[0].Dropped || ticks[0].Note != "02:30 does not exist" || err != nil {
		t.Errorf("%+v, %v", ticks, err)
	}
	room := make([]string, 1, 3) // which Except must not write into
	room[0] = "@daily"
	if spec(room...).Except("2027-03-28"); room[:2][1] != "" {
		t.Errorf("%q", room[:2])
	}
	for _, n := range []int{-1, 0, 1001, 1e9} {
		if _, _, err := preview(spec("@daily"), after, n); !errors.Is(err, delaytask.ErrInvalidOption) {
			t.Errorf("%d ticks: %v", n, err)
		}
	}
	for year, want := range map[int]int{-1e6: 3, 1: 3, 9998: 0, 9999: 0} {
		from := time.Date(year, 12, 31, 1, 0, 0, 0, time.UTC)
		if ticks, _, err := preview(spec("@daily"), from, 3); len(ticks) != want || err != nil {
			t.Errorf("year %d: %v, %v", year, ticks, err)
		}
	}
}
