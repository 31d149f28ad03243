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
	explain(at(4, 4, 2, 30), "It is to come, or waits: nothing is decided about it.")
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
