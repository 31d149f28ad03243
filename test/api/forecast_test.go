package api

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/report"
)

func TestAForecastHasWhatIsOverdueAndWhatFallsDue(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx := t.Context()
		save(t, s, "a", 0)
		save(t, s, "a", 30*time.Minute)
		save(t, s, "b", 12*time.Hour)
		_, err := s.SaveSchedule(ctx, "s", delaytask.Spec{Lines: []string{"@every 10m"}}, "c", nil)
		servertest.OK(t, err)

		f := counted(t, s, report.ForecastFilter{})
		if len(f.Tags) != 2 || f.Steps != 60 || f.At.Before(f.Start) || f.Step != time.Minute {
			t.Fatalf("got %+v", f)
		}
		exactly := func(n, ticks int64) report.DueTasks {
			return report.DueTasks{Tasks: n, Ticks: ticks, Precision: report.Exact}
		}
		if a := f.Tags[0]; a.Tag != "a" || a.Overdue != exactly(1, 0) || a.Sum() != exactly(1, 0) {
			t.Errorf("got %+v", a)
		}
		at := int(f.At.Add(30*time.Minute).Sub(f.Start) / f.Step)
		if near := max(f.Tags[0].Due[at].Tasks, f.Tags[0].Due[at-1].Tasks); near != 1 {
			t.Errorf("step %d of %+v", at, f.Tags[0].Due)
		}
		// The first tick may have its task already.
		if c := f.Tags[1]; c.Sum().Tasks < 5 || c.Sum().Tasks > 6 || c.Sum().Ticks < 5 {
			t.Errorf("got %+v", c)
		}
		f = counted(t, s, report.ForecastFilter{Tag: "b", Span: report.ForecastDay})
		if len(f.Tags) != 1 || f.Tags[0].Sum() != exactly(1, 0) || f.Total().Sum() != exactly(1, 0) {
			t.Errorf("got %+v", f)
		}
		_, err = s.Forecast(ctx, report.ForecastFilter{Span: 2 * time.Hour})
		wantError(t, "two hours", err, delaytask.ErrInvalidOption)
		_, err = s.Forecast(ctx, report.ForecastFilter{Tag: "bad!"})
		wantError(t, "a bad tag", err, delaytask.ErrInvalidTag)
	})
}

// counted returns a forecast that had the time to count all.
func counted(t *testing.T, s form, filter report.ForecastFilter) (f report.Forecast) {
	t.Helper()
	servertest.Eventually(t, "a forecast counts all", func() (exact bool) {
		var err error
		f, err = s.Forecast(t.Context(), filter)
		servertest.OK(t, err)
		total := f.Total()
		return total.Overdue.Precision == report.Exact && total.Sum().Precision == report.Exact
	})
	return f
}
