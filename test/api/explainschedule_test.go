package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
)

func TestExplainSaysWhyATickDidNotRun(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	servertest.OK(t, err)
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2027, month, day, hour, minute, 0, 0, berlin)
	}
	s := delaytasktest.New(t, delaytasktest.StartAt(at(3, 25, 12, 0)))
	fail := false
	servertest.OK(t, s.Register("books", processor.Func(func(context.Context, *delaytask.Task) error {
		if fail {
			return processor.Permanent(errors.New("the ledger is locked"))
		}
		return nil
	})))
	nightly := delaytask.Cron("30 2 * * *", "Europe/Berlin")
	nightly.DST = delaytask.DSTSkip
	_, err = s.SaveSchedule(t.Context(), "nightly", nightly, "books", "", delaytask.WithPauseAfter(2))
	servertest.OK(t, err)
	s.RunDue(at(3, 26, 12, 0))
	s.Outage(3 * 24 * time.Hour)
	s.RunDue(at(3, 30, 12, 0))
	skipped, err := s.SkipTick(t.Context(), "nightly")
	servertest.OK(t, err)
	s.RunDue(at(4, 1, 12, 0))
	fail = true
	s.RunDue(at(4, 4, 12, 0))

	explain := func(tick time.Time, want string) {
		t.Helper()
		e, err := s.ExplainSchedule(t.Context(), "nightly", tick)
		servertest.OK(t, err)
		if !strings.HasPrefix(e.Text, want) {
			t.Errorf("%v:\n got %s\nwant %s", tick, e.Text, want)
		}
	}
	explain(at(3, 25, 2, 30), "The schedule was created at 2027-03-25T11:00:00.000Z, after this tick.")
	explain(at(3, 26, 2, 30), "It ran as task ")
	explain(at(3, 27, 2, 30), "It did not run: no process decided it in time; a later tick runs.")
	explain(at(3, 28, 3, 0),
		"The definition of today names no tick at this moment, but one at 2027-03-27T01:30:00.000Z")
	explain(skipped, "It did not run: skipped by an operator.")
	explain(at(4, 2, 2, 30), "Its run, task ")
	explain(at(4, 4, 2, 30), "It did not run: the schedule is paused: 2 runs failed in a row")
	explain(at(4, 5, 2, 30), "It does not run as long as the schedule is paused: 2 runs failed in a row")
	e, err := s.ExplainSchedule(t.Context(), "nightly", time.Time{})
	servertest.OK(t, err)
	want := "It is paused since 2027-04-03T00:30:00.000Z: 2 runs failed in a row: the ledger is locked."
	if !strings.HasPrefix(e.Text, want) {
		t.Errorf("\n got %s\nwant %s", e.Text, want)
	}
	_, err = s.TriggerSchedule(t.Context(), "nightly", false)
	servertest.OK(t, err)
	ticks, err := s.ScheduleTicks(t.Context(), "nightly", time.Time{}, 1)
	servertest.OK(t, err)
	explain(ticks[0].Tick.Add(-time.Microsecond), "Its run has not ended.")
	_, err = s.ExplainSchedule(t.Context(), "none", time.Time{})
	if !errors.Is(err, delaytask.ErrScheduleNotFound) {
		t.Error(err)
	}
}

// What is no tick, or does not run any more, is neither to come nor has it failed to run.
func TestExplainSaysToComeOfWhatComesAlone(t *testing.T) {
	t.Parallel()
	noon := time.Date(2027, 3, 25, 12, 0, 0, 0, time.UTC)
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	servertest.OK(t, s.Register("books", processor.Func(func(context.Context, *delaytask.Task) error { return nil })))
	hourly := delaytask.Cron("0 * * * *", "")
	hourly.End = noon.Add(24 * time.Hour)
	save := func(opts ...delaytask.Option) {
		t.Helper()
		_, err := s.SaveSchedule(t.Context(), "hourly", hourly, "books", "", opts...)
		servertest.OK(t, err)
	}
	save()
	says := func(tick time.Time, want string) {
		t.Helper()
		e, err := s.ExplainSchedule(t.Context(), "hourly", tick)
		servertest.OK(t, err)
		if !strings.HasPrefix(e.Text, want) {
			t.Errorf("%v:\n got %s\nwant %s", tick, e.Text, want)
		}
	}
	const none = "The definition of today names no tick at this moment"
	s.Outage(5*time.Hour + time.Minute)
	s.RunDue(noon.Add(5*time.Hour + 2*time.Minute))
	says(noon.Add(2*time.Hour), "It did not run, as one of 4 ")
	says(noon.Add(150*time.Minute), none)
	says(noon.Add(6*time.Hour), "It is to come")
	says(noon.Add(25*time.Hour), none)
	save(delaytask.WithMaxRuns(3))
	says(noon.Add(7*time.Hour), "It is to come")
	says(noon.Add(8*time.Hour), "It runs only if ticks before it do not: the schedule ends after 3 runs.")
	s.RunDue(noon.Add(7*time.Hour + time.Minute))
	says(noon.Add(8*time.Hour), "It does not run")
	save()
	servertest.OK(t, s.PauseSchedule(t.Context(), "hourly", delaytask.Reason("moving")))
	says(noon.Add(8*time.Hour), "It does not run as long as the schedule is paused: moving.")
	s.RunDue(noon.Add(8*time.Hour + time.Minute))
	says(noon.Add(8*time.Hour), "It did not run: the schedule is paused: moving.")
	says(noon.Add(6*time.Hour), "It ran as task ")
}
