package integration

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestTwoProcessesShareTheTasksAndRunNoneTwice(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		c, s := spawn(t, d), open(t, d)
		c.say("serve", "t")
		c.hear("serving")
		p, ran := ids()
		serve(t, s, "t", p)
		db := pool(t, d)
		const plain, tasks = 100, 120
		// These are armed by nobody: both processes find them at the same time.
		row := "('t', '', 0, 60000)"
		rows := row + strings.Repeat(", "+row, plain-1)
		execute(t, db, "INSERT INTO delay_task_message (tag, message_body, delay_time, ttr) VALUES "+rows)
		items := make([]delaytask.Item, tasks)
		for i := range items { // most of them are for the look-ahead
			items[i] = delaytask.Item{Tag: "t", Delay: time.Duration(i) * 40 * time.Millisecond}
		}
		if _, err := s.SaveDelayTasks(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		const own = 10
		for range own {
			c.save("t", 100*time.Millisecond)
		}
		const all = plain + tasks + own
		eventually(t, "all tasks are completed", func() bool {
			return number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE status = 1") == all
		})
		runs := map[string]int{}
		here, there := 0, 0
		for range all {
			select {
			case id := <-ran:
				here++
				runs[strconv.FormatInt(id, 10)]++
			default:
				there++
				runs[c.hear("run")[0]]++
			}
		}
		t.Logf("%d ran here and %d in the child", here, there)
		if len(runs) != all || len(ran) > 0 {
			t.Errorf("%d tasks ran in %d runs, want all %d once", len(runs), here+there+len(ran), all)
		}
		if here == 0 || there == 0 {
			t.Error("one process did all the work")
		}
		if n := number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE attempt <> 1"); n != 0 {
			t.Errorf("%d tasks took more than one attempt", n)
		}
		const again = "SELECT COUNT(*) FROM delay_task_message WHERE version <> 2"
		if n := number(t, db, again); n > all/10 { // what is claimed while the machine stands still may be put back
			t.Errorf("%d of %d tasks took more than one claim and one result", n, all)
		}
	})
}

func TestTasksOfAProcessThatServesNothingAreOnTime(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		c, s := spawn(t, d), open(t, d)
		p, _ := ids()
		serve(t, s, "t", p)
		warm(t, s, "t")
		saved := map[time.Duration]int64{}
		for _, delay := range []time.Duration{3 * time.Second, 1500 * time.Millisecond, 500 * time.Millisecond, 0} {
			saved[delay] = c.save("t", delay)
		}
		for delay, id := range saved {
			task := reaches(t, s, id, delaytask.Completed)
			within(t, time.Second, task.Expected, task.Started, "lateness with a delay of "+delay.String())
		}
	})
}
