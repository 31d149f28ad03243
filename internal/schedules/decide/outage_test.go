package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// An outage of 122 s begins before and after the run of 00:01 is planted. What becomes of the ticks is the same.
func TestTheSecondInWhichAnOutageBeginsDecidesNothing(t *testing.T) {
	for name, s := range map[string]row.Schedule{
		"once": {}, "skip": {Missed: delaytask.MissedSkip}, "all": {Missed: delaytask.MissedAll},
		"once, queue one": {Overlap: delaytask.OverlapQueueOne},
		"all, queue one":  {Missed: delaytask.MissedAll, Overlap: delaytask.OverlapQueueOne},
		"once, replace":   {Overlap: delaytask.OverlapReplace},
		"once, allow":     {Overlap: delaytask.OverlapAllow, MaxOpen: 3},
		"all, allow":      {Missed: delaytask.MissedAll, Overlap: delaytask.OverlapAllow, MaxOpen: 1},
		"start within":    {StartWithin: 70 * time.Second},
		"within, all":     {StartWithin: 70 * time.Second, Missed: delaytask.MissedAll},
	} {
		for _, away := range []time.Duration{122 * time.Second, 12 * time.Minute} {
			t.Run(name+" "+away.String(), func(t *testing.T) {
				history := func(begins time.Duration) (lines []string) {
					w := begin(t, s, everyMinute).until(begins).sleep(65*time.Second - begins + away)
					w.takes = 100 * time.Millisecond
					w.until(w.now.Sub(midnight) + 5*time.Second)
					slices.SortFunc(w.history, func(a, b row.ScheduleRun) int { return int(a.Tick - b.Tick) })
					for _, run := range w.history {
						lines = append(lines, w.line(run))
					}
					return lines
				}
				before, after := history(45*time.Second), history(55*time.Second)
				if !slices.Equal(before, after) {
					t.Errorf("begun before the run was planted\n\t%s\nafter\n\t%s",
						strings.Join(before, "\n\t"), strings.Join(after, "\n\t"))
				}
			})
		}
	}
}

func TestARunThatMayNotBeginAnyMoreIsTakenBack(t *testing.T) {
	for _, s := range []row.Schedule{{Missed: delaytask.MissedSkip}, {StartWithin: time.Minute}} {
		w := begin(t, s, "@every 5m").until(4*time.Minute + 55*time.Second)
		w.sleep(127 * time.Second).until(8 * time.Minute)
		w.wants("00:00:00 completed", "00:05:00 missed")
		if w.s.MissedTicks != 1 {
			t.Errorf("%d ticks missed", w.s.MissedTicks)
		}
	}
	// Nothing takes the run, and later ticks have their own.
	w := begin(t, row.Schedule{StartWithin: 30 * time.Second}, everyMinute)
	w.takes = 0
	w.until(2*time.Minute+time.Second).wants("00:00:00 missed", "00:01:00 missed", "00:02:00 open")
}

// A node has claimed the run before the schedule was looked at, and cancels it.
func TestAClaimThatCameTooLateIsNoStart(t *testing.T) {
	w := begin(t, row.Schedule{Missed: delaytask.MissedAll, StartWithin: 2 * time.Minute}, everyMinute)
	w.until(55 * time.Second).sleep(5 * time.Minute)
	r := w.tasks[w.s.RunID]
	r.Status, r.Due, r.ErrorStack, r.Version = row.Cancelled, w.now, "claimed 4m after it was due", r.Version+1
	w.until(5*time.Minute+57*time.Second).wants("00:00:00 completed", "00:01:00 missed",
		"00:02:00 missed 2 until 00:03:00", "00:04:00 completed late at 00:05:55", "00:05:00 open")
}

// The run waits for its schedule at the node that has claimed it.
func TestAHeldRunIsTakenBack(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second).sleep(5 * time.Minute)
	r := w.tasks[w.s.RunID]
	asks := row.Row{ID: r.ID, Version: r.Version + 1, Due: r.Due}
	r.Status, r.Attempt, r.Version, r.Execution, r.Updated = row.Executing, 1, r.Version+1, w.now, w.now
	st := w.state()
	if d := Decide(st); len(d.Insert)+len(d.New) > 0 || d.Schedule.Look != w.now.Add(refusedWithin) {
		t.Errorf("another node does not wait for it: %+v", d)
	}
	d, taken := Begin(st, &asks)
	if !taken || len(d.Changes) != 1 || d.Changes[0].Version != r.Version {
		t.Fatalf("%v %+v", taken, d)
	}
	w.apply(d)
	w.until(5*time.Minute+58*time.Second).wants("00:00:00 completed", "00:01:00 missed 4 until 00:04:00",
		"00:05:00 completed at 00:05:55", "00:06:00 open")
	if _, taken := Begin(w.state(), &asks); taken {
		t.Error("it is no open run any more")
	}
}
