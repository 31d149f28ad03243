package api

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestAForecastHasWhatIsOverdueAndWhatFallsDue(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx := t.Context()
		save(t, s, "a", 0)
		save(t, s, "a", 30*time.Minute)
		save(t, s, "b", 12*time.Hour)
		_, err := s.SaveSchedule(ctx, "s", processor.Spec{Lines: []string{"@every 10m"}}, "c", nil)
		servertest.OK(t, err)

		f := counted(t, s, processor.ForecastFilter{})
		if len(f.Tags) != 2 || f.Steps != 60 || f.At.Before(f.Start) || f.Step != time.Minute {
			t.Fatalf("got %+v", f)
		}
		exactly := func(n, ticks int64) processor.DueTasks {
			return processor.DueTasks{Tasks: n, Ticks: ticks, Precision: processor.Exact}
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
		f = counted(t, s, processor.ForecastFilter{Tag: "b", Span: processor.ForecastDay})
		if len(f.Tags) != 1 || f.Tags[0].Sum() != exactly(1, 0) || f.Total().Sum() != exactly(1, 0) {
			t.Errorf("got %+v", f)
		}
		_, err = s.Forecast(ctx, processor.ForecastFilter{Span: 2 * time.Hour})
		wantError(t, "two hours", err, processor.ErrInvalidOption)
		_, err = s.Forecast(ctx, processor.ForecastFilter{Tag: "bad!"})
		wantError(t, "a bad tag", err, processor.ErrInvalidTag)
	})
}

// counted returns a forecast that had the time to count all.
func counted(t *testing.T, s form, filter processor.ForecastFilter) (f processor.Forecast) {
	t.Helper()
	servertest.Eventually(t, "a forecast counts all", func() (exact bool) {
		var err error
		f, err = s.Forecast(t.Context(), filter)
		servertest.OK(t, err)
		total := f.Total()
		return total.Overdue.Precision == processor.Exact && total.Sum().Precision == processor.Exact
	})
	return f
}
