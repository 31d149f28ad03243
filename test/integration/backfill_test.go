//go:build unix

package integration

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// Only the children run and plan. Each is killed during runs, except for the last.
func TestBackfillOfKilledProcessesRunsEachTickOnce(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		const ticks, atOnce = 300, 7
		s := open(t, d)
		_, err := s.SaveSchedule(t.Context(), "job", delaytask.Every(time.Hour), "t", nil, delaytask.WithTTR(childTTR))
		servertest.OK(t, err)
		servertest.OK(t, s.PauseSchedule(t.Context(), "job", delaytask.Reason("only its past runs")))
		last := time.Now().Truncate(time.Hour)
		name, err := s.Backfill(t.Context(), "job", last.Add(-(ticks-1)*time.Hour), last, atOnce)
		servertest.OK(t, err)

		runs := map[string]int{} // by the ids of tasks
		for _, until := range []int{ticks / 4, ticks / 2, ticks} {
			c := serving(t, d)
			for len(runs) < until {
				runs[c.Says(`^run (\d+)`)]++
			}
			if until == ticks {
				servertest.Eventually(t, "the backfill ends", func() bool {
					b, err := s.GetSchedule(t.Context(), name)
					return err == nil && b.State == delaytask.ScheduleEnded
				})
			}
			c.Kill()
			for _, said := range regexp.MustCompile(`(?m)^run (\d+)`).FindAllStringSubmatch(c.Rest(), -1) {
				runs[said[1]]++
			}
		}

		history, err := s.ScheduleTicks(t.Context(), name, time.Time{}, ticks+1)
		servertest.OK(t, err)
		// Seconds before a full hour the schedule has planted a run, which the pause has cancelled.
		stored := number(t, pool(t, d), "SELECT COUNT(*) FROM delay_task_message WHERE status <> 4")
		if len(history) != ticks || stored != ticks || len(runs) != ticks {
			t.Errorf("%d decided, %d stored, %d run; want %d of each", len(history), stored, len(runs), ticks)
		}
		again := 0
		for i, of := range history {
			want := last.Add(-time.Duration(i) * time.Hour)
			if !of.Tick.Equal(want) || of.Outcome != delaytask.OutcomeCompleted {
				t.Errorf("the history has %+v, want %v completed", of, want)
			}
			// A run that executed when its process was killed runs again.
			n, lost := runs[strconv.FormatInt(of.TaskID, 10)], get(t, s, of.TaskID).CrashCount
			if again += n - 1; n < 1 || n > 1+lost {
				t.Errorf("the tick %v ran %d times, and its task lost %d leases", of.Tick, n, lost)
			}
		}
		t.Logf("%d runs were repeated", again)
	})
}
