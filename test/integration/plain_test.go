//go:build unix

package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/report"
)

// Dashboards and people read the columns by plain SQL.
func TestColumnsOfACompletedTask(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		serve(t, s, "order.close", nothing)
		id, err := s.SaveDelayTask(t.Context(), "order.close", map[string]int{"order": 7}, 300*time.Millisecond,
			delaytask.WithKey("order 7"), delaytask.WithHeader("trace", "é"), delaytask.WithMaxAttempts(7),
			delaytask.WithPriority(-3), delaytask.WithTTR(20*time.Second),
			delaytask.WithMaxLateness(time.Hour, delaytask.LateFail))
		servertest.OK(t, err)
		stored := reaches(t, s, id, delaytask.Completed)
		row := columns(t, db, id)
		want := map[string]string{
			"id": fmt.Sprint(id), "tag": "order.close", "task_key": "order 7", "active_key": "NULL",
			"message_body": `{"order":7}`, "status": "1", "version": "2", "attempt": "1",
			"max_attempts": "7", "crash_count": "0", "ttr": "20000", "priority": "-3",
			"max_late_ms": "3600000", "late_policy": "2", "delay_time": "300", "error_stack": "NULL", "errors": "NULL",
		}
		for column, value := range want {
			if row[column] != value {
				t.Errorf("%s is %q, want %q", column, row[column], value)
			}
		}
		if headers := strings.ReplaceAll(row["headers"], " ", ""); headers != `{"trace":"é"}` {
			t.Errorf("headers are %q", headers)
		}
		if !regexp.MustCompile(`^.+:\d+:[0-9a-f]{16}:\d+$`).MatchString(stored.Executor) {
			t.Errorf("executor is %q", stored.Executor)
		}
		const layout = "2006-01-02 15:04:05.000000"
		at := map[string]time.Time{}
		for column := range row {
			if !strings.HasSuffix(column, "_time") || column == "delay_time" {
				continue
			}
			at[column], err = time.Parse(layout, row[column])
			if err != nil {
				t.Errorf("%s: %v", column, err)
			}
		}
		within(t, time.Second, at["expected_time"], at["execution_time"], "lateness")
		within(t, time.Second, at["execution_time"], at["finish_time"], "run")
		if at["due_time"] != at["finish_time"] || at["update_time"].Before(at["finish_time"]) {
			t.Errorf("due %v, finished %v, updated %v", at["due_time"], at["finish_time"], at["update_time"])
		}
		if skew := time.Since(at["create_time"]).Abs(); skew > time.Minute {
			t.Errorf("made at %v, which is %v from now: not UTC?", at["create_time"], skew)
		}
		if !stored.Started.Equal(at["execution_time"]) || !stored.Finished.Equal(at["finish_time"]) {
			t.Errorf("Get shows %+v", stored)
		}
	})
}

// now is the SQL expression for the time.
func now(d dbtest.Database, seconds string) string {
	if d.Kind == dbtest.SQLite {
		return "strftime('%Y-%m-%d %H:%M:%f000', 'now', '+" + seconds + " seconds')"
	}
	return "UTC_TIMESTAMP(6) + INTERVAL " + seconds + " SECOND"
}

func TestPlainInsertRuns(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		const insert = "INSERT INTO delay_task_message (tag, message_body, "
		execute(t, db, insert+"delay_time) VALUES ('t', '{}', 700)")
		execute(t, db, insert+"expected_time) VALUES ('t', 'text', "+now(d, "2")+")")
		execute(t, db, insert+"delay_time, due_time) VALUES ('t', 'no due time', 700, NULL)")
		execute(t, db,
			"INSERT INTO delay_task_message (tag, message_body, status, error_stack, version, ip_address, delay_time,"+
				" expected_time, create_time, update_time) VALUES ('t', NULL, 0, NULL, 0, NULL, 2000,"+
				now(d, "2")+", "+now(d, "0")+", "+now(d, "0")+")")
		page, err := s.List(t.Context(), delaytask.Filter{Tag: "t", Bodies: true})
		if err != nil || slices.ContainsFunc(page.Tasks,
			func(task delaytask.TaskRow) bool { return task.Broken != "" }) {
			t.Errorf("listed %+v, %v", page, err)
		}
		for range 4 {
			id := servertest.Receive(t, ran, "plain row runs")
			task := reaches(t, s, id, delaytask.Completed)
			onTime(t, 2*time.Second, &task)
			if task.Attempt != 1 || task.Version < 2 || task.TTR != 15*time.Second || task.MaxAttempts != 20 {
				t.Errorf("the row became %+v", task)
			}
			if off := task.Expected.Sub(task.Created) - task.Delay; task.Delay > 0 && off.Abs() > 5*time.Second {
				t.Errorf("a delay of %v is expected at %v, created at %v", task.Delay, task.Expected, task.Created)
			}
		}
	})
}

// The numbers after such an id are beyond what a process can name, and SQLite has none.
func TestPlainInsertsRunAfterOneWithTheLastID(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		const insert = "INSERT INTO delay_task_message (tag, message_body, id) VALUES ('t', 'body', "
		beyond, mend := "NULL", "ALTER TABLE delay_task_message AUTO_INCREMENT = 1"
		if d.Kind == dbtest.SQLite {
			beyond, mend = "-1", "UPDATE sqlite_sequence SET seq = (SELECT MAX(id) FROM delay_task_message)"+
				" WHERE name = 'delay_task_message'"
		}
		execute(t, db, insert+"9223372036854775807)")
		execute(t, db, insert+beyond+")")
		servertest.Receive(t, ran, "one of the rows runs")
		servertest.Receive(t, ran, "the other one runs")
		servertest.Eventually(t, "both have other ids, which a row that runs gets when it has ended", func() bool {
			var last int64
			err := db.QueryRowContext(t.Context(), "SELECT MAX(id) FROM delay_task_message").Scan(&last)
			return err == nil && last <= 1<<62
		})
		execute(t, db, mend)
		execute(t, db, insert+"NULL)")
		if id := servertest.Receive(t, ran, "a row runs that got its id afterwards"); id > 1<<62 {
			t.Errorf("it has the id %d", id)
		}
	})
}

// A server takes tags for one that differ only in spaces at their ends.
func TestABulkChangeReachesTagsThatDifferInSpaces(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		execute(t, db, "INSERT INTO delay_task_message (tag, message_body, delay_time)"+
			" VALUES ('t ', '', 90000000), ('t', '', 90000000), ('only ', '', 90000000), ('T', '', 90000000)")
		filter := delaytask.Filter{Status: delaytask.Pending}
		counted, err := s.CancelAll(t.Context(), delaytask.Bulk{Filter: filter, DryRun: true})
		servertest.OK(t, err)
		changed, err := s.CancelAll(t.Context(), delaytask.Bulk{Filter: filter, AsOf: counted.AsOf})
		if counted.Tasks != 4 || changed.Tasks != 4 || err != nil {
			t.Errorf("counted %d and cancelled %d tasks, want 4 (%v)", counted.Tasks, changed.Tasks, err)
		}
	})
}

// Plain SQL in a local time that is ahead of UTC writes such rows.
func TestABulkChangeLeavesTasksOfTheFutureOutOfItsCountToo(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		ahead := time.Now().UTC().Add(time.Hour).Format("2006-01-02 15:04:05.000000")
		execute(t, db, "INSERT INTO delay_task_message (tag, message_body, delay_time, create_time)"+
			" VALUES ('t', '', 90000000, '"+ahead+"'), ('t', '', 90000000, '"+ahead+"')")
		for _, want := range []int{0, 1} {
			counted, err := s.CancelAll(t.Context(), delaytask.Bulk{DryRun: true})
			servertest.OK(t, err)
			changed, err := s.CancelAll(t.Context(), delaytask.Bulk{AsOf: counted.AsOf})
			if counted.Tasks != want || changed.Tasks != want || err != nil {
				t.Errorf("counted %d and cancelled %d tasks, want %d (%v)", counted.Tasks, changed.Tasks, want, err)
			}
			save(t, s, "t", 25*time.Hour)
		}
	})
}

func TestAForecastCountsBesideARowWithoutAMoment(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, lenient := open(t, d), pool(t, d, "sql_mode=%27%27")
		save(t, s, "t", 30*time.Minute)
		execute(t, lenient,
			"INSERT INTO delay_task_message (tag, message_body, due_time) VALUES ('t', '', '0000-00-00')")
		servertest.Eventually(t, "a forecast has the time to count the task", func() bool {
			f, err := s.Forecast(t.Context(), report.ForecastFilter{})
			servertest.OK(t, err)
			return f.Total().Sum().Tasks == 1
		})
	})
}

// Plain SQL moves an armed task to the end of all time, without a new version. A server that cannot add a lease to that
// refuses the claim, and the row stays. SQLite writes the year 10000 as text, which is no time: the row fails like
// others that cannot be decoded.
func TestTaskParkedByHandHoldsUpNoNeighbour(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d, quiet), pool(t, d)
		serve(t, s, "t", nothing)
		warm(t, s, "t")
		var neighbours []int64
		var parked int64
		// On a machine that stalls they may be claimed before.
		for delay := 5 * time.Second; parked == 0; delay *= 2 {
			at := time.Now().Add(delay)
			neighbours = neighbours[:0]
			for range 20 {
				neighbours = append(neighbours, save(t, s, "t", 0, delaytask.WithTime(at)))
			}
			const park = "UPDATE delay_task_message SET due_time = '9999-12-31 23:59:59.000000' WHERE status = 0 " +
				"AND id = ?"
			execute(t, db, park, neighbours[7])
			if strings.HasPrefix(columns(t, db, neighbours[7])["due_time"], "9999") {
				parked = neighbours[7]
			}
		}
		neighbours = slices.Delete(neighbours, 7, 8)
		for _, id := range neighbours {
			if task := reaches(t, s, id, delaytask.Completed); task.Attempt != 1 {
				t.Errorf("a neighbour was tried %d times", task.Attempt)
			}
		}
		want := "0"
		if d.Kind == dbtest.SQLite {
			want = "2"
		}
		servertest.Eventually(t, "the parked task has the status "+want, func() bool {
			return columns(t, db, parked)["status"] == want
		})
	})
}
