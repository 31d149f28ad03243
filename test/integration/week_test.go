//go:build unix

package integration

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// TestAWeekAfterTheLastProcessWasKilled moves all that is stored a week back, for no test can move a server's clock.
func TestAWeekAfterTheLastProcessWasKilled(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		db := pool(t, d)
		s := open(t, d)
		c := serving(t, d)
		want := map[string]string{}
		schedule := func(name string, body any, became string, opts ...delaytask.Option) {
			tick := s.Now().Add(2 * time.Second).Truncate(time.Second)
			phase := tick.Sub(tick.Truncate(time.Hour))
			when := delaytask.Spec{Lines: []string{fmt.Sprintf("@every 1h/%v", phase)}}
			opts = append(opts, delaytask.WithKeepRuns(1000))
			_, err := s.SaveSchedule(t.Context(), name, when, "t", body, opts...)
			servertest.OK(t, err)
			want[name] = became
		}
		schedule("once", "", "completed 1, missed 167, completed 1")
		schedule("all", "", "completed 169", delaytask.WithMissed(delaytask.MissedAll))
		schedule("held", "hold", "failed 1, missed 167, completed 1")
		schedule("queued", "hold", "failed 1, missed 167, completed 1",
			delaytask.WithOverlap(delaytask.OverlapQueueOne))
		schedule("beside", "hold", "completed 1, missed 167, completed 1",
			delaytask.WithOverlap(delaytask.OverlapAllow))
		for range want {
			c.Says("^run ")
		}
		servertest.Eventually(t, "the runs that end have ended", func() bool {
			return number(t, db, allRows+" WHERE status = 1") == 2
		})
		c.Kill()
		moveBack(t, db, 7)

		serve(t, s, "t", func(context.Context, *delaytask.Task) error { return nil })
		got := map[string]string{}
		t.Cleanup(func() {
			if t.Failed() {
				t.Errorf("\n got %v\nwant %v", got, want)
			}
		})
		servertest.Eventually(t, "each tick has become what it is to become", func() bool {
			for name := range want {
				got[name] = became(t, s, name)
			}
			return maps.Equal(got, want)
		})
	})
}

// became tells the history of a schedule, the oldest first.
func became(t *testing.T, s *scheduler.Scheduler, name string) string {
	t.Helper()
	rows, err := s.ScheduleTicks(t.Context(), name, time.Time{}, 1000)
	servertest.OK(t, err)
	var lines []string
	last, ticks := "", 0
	for _, row := range slices.Backward(rows) {
		if outcome := string(row.Outcome); outcome != last {
			lines, last, ticks = append(lines, ""), outcome, 0
		}
		ticks += row.Ticks
		lines[len(lines)-1] = fmt.Sprint(last, " ", ticks)
	}
	return strings.Join(lines, ", ")
}

// moveBack moves every stored time by so many days.
func moveBack(t *testing.T, db *sql.DB, days int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `
		SELECT table_name, GROUP_CONCAT(column_name, ' = ', column_name, ' - INTERVAL ? DAY')
		FROM information_schema.columns
		WHERE table_schema = DATABASE() AND data_type = 'datetime' AND COALESCE(generation_expression, '') = ''
			AND table_name IN
				('delay_task_schedule', 'delay_task_schedule_run', 'delay_task_message', 'delay_task_node')
		GROUP BY table_name`)
	servertest.OK(t, err)
	defer rows.Close()
	var statements []string
	for rows.Next() {
		var table, set string
		servertest.OK(t, rows.Scan(&table, &set))
		statements = append(statements, "UPDATE "+table+" SET "+strings.ReplaceAll(set, "?", fmt.Sprint(days)))
	}
	servertest.OK(t, rows.Err())
	for _, statement := range statements {
		execute(t, db, statement)
	}
}
