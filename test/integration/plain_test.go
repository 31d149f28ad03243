package integration

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// now is the expression with which plain SQL names the time.
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
		execute(t, db, "INSERT INTO delay_task_message (tag, message_body, status, error_stack, version, ip_address, delay_time,"+
			" expected_time, execution_time, create_time, update_time) VALUES ('t', NULL, 0, NULL, 0, NULL, 2000,"+
			now(d, "2")+", NULL, "+now(d, "0")+", "+now(d, "0")+")") // a table of old has all of these
		page, err := s.List(t.Context(), delaytask.Filter{Tag: "t", Bodies: true})
		if err != nil || slices.ContainsFunc(page.Tasks, func(task delaytask.Task) bool { return task.Broken != "" }) {
			t.Errorf("listed %+v, %v", page, err)
		}
		for range 4 {
			id := receive(t, ran, "plain row runs")
			task := reaches(t, s, id, delaytask.Completed)
			onTime(t, 2*time.Second, &task)
			if task.Attempt != 1 || task.Version < 2 || task.TTR != 15*time.Second || task.MaxAttempts != 20 {
				t.Errorf("the row became %+v", task)
			}
		}
	})
}

func isDuplicate(err error) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && refused.Number == 1062
}

// AUTO_INCREMENT goes on at our next number, so plain rows keep taking numbers that saves are about to use.
func TestPlainInsertsTakeOurNextNumbersAndCostNobody(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		const rounds, items, plain = 4, 500, 80
		var wg sync.WaitGroup
		wg.Go(func() {
			for stored := 0; stored < plain; {
				const statement = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES ('plain', '', 3600000)"
				_, err := db.ExecContext(t.Context(), statement)
				switch {
				case err == nil:
					stored++
				case isDuplicate(err): // the server hands out a number a moment before it learns that a save has taken it
				default:
					t.Errorf("plain insert: %v", err)
					return
				}
			}
		})
		var mu sync.Mutex
		var saved []int64
		for range rounds {
			wg.Go(func() {
				batch := make([]delaytask.Item, items)
				for i := range batch {
					batch[i] = delaytask.Item{Tag: "t", Delay: time.Hour}
				}
				results, err := s.SaveDelayTasks(t.Context(), batch)
				if err != nil {
					t.Errorf("save: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range results {
					saved = append(saved, r.ID)
				}
			})
		}
		wg.Wait()
		slices.Sort(saved)
		if n := len(slices.Compact(saved)); n != rounds*items {
			t.Errorf("%d ids for %d saves", n, rounds*items)
		}
		for tag, want := range map[string]int{"t": rounds * items, "plain": plain} {
			if n := number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE tag = ?", tag); n != want {
				t.Errorf("%d rows of tag %s, want %d", n, tag, want)
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
		receive(t, ran, "one of the rows runs")
		receive(t, ran, "the other one runs")
		execute(t, db, mend)
		execute(t, db, insert+"NULL)")
		if id := receive(t, ran, "a row runs that got its id afterwards"); id > 1<<62 {
			t.Errorf("it has the id %d", id)
		}
	})
}
