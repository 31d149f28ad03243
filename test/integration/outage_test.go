//go:build unix

package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// outside is a connection to the server beside the test's database.
func outside(t *testing.T, d dbtest.Database) *sql.DB {
	t.Helper()
	cfg := mysqlConfig(t, d)
	cfg.DBName = ""
	connector, err := mysql.NewConnector(cfg)
	servertest.OK(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// killAll kills every connection to the database, and returns how many there were.
func killAll(t *testing.T, d dbtest.Database, server *sql.DB) int {
	t.Helper()
	query := "SELECT id FROM information_schema.processlist WHERE db = ?"
	if d.Kind == dbtest.MySQL { // whose processlist cannot be read while a statement holds a character of four bytes
		query = "SELECT processlist_id FROM performance_schema.threads WHERE processlist_db = ?"
	}
	rows, err := server.QueryContext(t.Context(), query, mysqlConfig(t, d).DBName)
	servertest.OK(t, err)
	defer rows.Close()
	var killed []int64
	for rows.Next() {
		var id int64
		servertest.OK(t, rows.Scan(&id))
		killed = append(killed, id)
	}
	servertest.OK(t, rows.Err())
	for _, id := range killed {
		_, err := server.ExecContext(t.Context(), fmt.Sprintf("KILL %d", id))
		// It has ended by itself.
		if refused, ok := errors.AsType[*mysql.MySQLError](err); err != nil && (!ok || refused.Number != 1094) {
			t.Fatal(err)
		}
	}
	return len(killed)
}

// Each chunk of a batch is stored as a whole or not at all, whatever happens to its connection.
func TestKilledConnectionsLoseNothingAndRunNothingTwice(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, server, db := open(t, d), outside(t, d), pool(t, d)
		p, ran := ids()
		serve(t, s, "t", p)
		const batches, chunk = 4, 500
		stored := make(chan int, 1)
		go func() {
			items := make([]delaytask.Item, 2*chunk)
			for i := range items {
				items[i] = delaytask.Item{Tag: "t", Delay: time.Duration(i%40) * 50 * time.Millisecond}
			}
			parts := [2 * batches]int{}
			for batch := range batches {
				results, err := s.SaveDelayTasks(t.Context(), items)
				if results == nil {
					t.Errorf("batch %d: %v", batch, err)
				}
				for _, r := range results {
					if r.Err == nil {
						parts[2*batch+r.Chunk]++
					}
				}
			}
			all := 0
			for i, n := range parts {
				if all += n; n != 0 && n != chunk {
					t.Errorf("chunk %d: %d of %d tasks are said to be stored", i, n, chunk)
				}
			}
			stored <- all
		}()
		runs, rounds, killed, all := map[int64]int{}, 0, 0, -1
		kill := time.NewTicker(60 * time.Millisecond)
		defer kill.Stop()
		given := time.After(patience)
		for len(runs) != all {
			select {
			case id := <-ran:
				runs[id]++
			case all = <-stored:
			case <-kill.C:
				if rounds < 40 {
					rounds++
					killed += killAll(t, d, server)
				}
			case <-given:
				t.Fatalf("only %d of %d tasks ran", len(runs), all)
			}
		}
		t.Logf("%d connections were killed in %d rounds", killed, rounds)
		servertest.Eventually(t, "all are completed by their first attempts", func() bool {
			return number(t, db, allRows+" WHERE status <> 1 OR attempt <> 1 OR crash_count <> 0") == 0
		})
		for id, n := range runs {
			if n != 1 {
				t.Errorf("task %d ran %d times", id, n)
			}
		}
		if n := number(t, db, allRows); n != all || len(ran) > 0 {
			t.Errorf("%d rows and %d more runs, want %d and 0", n, len(ran), all)
		}
	})
}

// It changes a setting of the whole server. So it is not parallel, and skips servers that others use, unless
// DELAYTASK_TEST_EXCLUSIVE=1; .ci/run has such a turn.
func TestServerThatIsReadOnlyForAWhile(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		cfg := mysqlConfig(t, d)
		if strings.Contains(os.Getenv("DELAYTASK_TEST_DSN"), cfg.Addr) && os.Getenv("DELAYTASK_TEST_EXCLUSIVE") != "1" {
			t.Skip("others may use the server now; DELAYTASK_TEST_EXCLUSIVE=1 says that nobody does")
		}
		server := outside(t, d)
		user := "plain" + cfg.DBName[len(cfg.DBName)-12:]
		execute(t, server, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'pw'") // root can write to a read-only server
		t.Cleanup(func() { _, _ = server.ExecContext(context.Background(), "DROP USER '"+user+"'@'%'") })
		execute(t, server, "GRANT ALL ON `"+cfg.DBName+"`.* TO '"+user+"'@'%'")
		cfg.User, cfg.Passwd = user, "pw"
		s := open(t, dbtest.Database{Kind: d.Kind, DSN: cfg.FormatDSN()}, quiet)
		p, ran := ids()
		slow, running, letGo := holding()
		servertest.OK(t, s.Register("slow", slow))
		serve(t, s, "t", p)
		want := map[int64]bool{save(t, s, "slow", 0): true}
		for i := range 30 {
			want[save(t, s, "t", time.Second+time.Duration(i)*100*time.Millisecond)] = true
		}
		servertest.Receive(t, running, "slow task runs")

		execute(t, server, "SET GLOBAL read_only = 1")
		t.Cleanup(func() { _, _ = server.ExecContext(context.Background(), "SET GLOBAL read_only = 0") })
		close(letGo)
		var refused, unknown int
		again := map[int64]bool{}
		for begun := time.Now(); time.Since(begun) < 2*time.Second; {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			id, err := s.SaveDelayTask(ctx, "t", nil, 0)
			cancel()
			out, isUnknown := errors.AsType[*delaytask.OutcomeUnknownError](err)
			switch {
			case err == nil:
				t.Errorf("save on a read-only server: task %d and no error", id)
			case isUnknown:
				unknown++
				again[out.ID] = true
			default:
				refused++
			}
		}
		t.Logf("of the saves, %d were refused and %d unknown", refused, unknown)
		execute(t, server, "SET GLOBAL read_only = 0")

		for id := range again {
			got, err := s.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithID(id))
			if err != nil || got != id {
				t.Errorf("saved again with id %d: %d, %v", id, got, err)
			}
			want[id] = true
		}
		runs := map[int64]int{}
		for range len(want) - 1 { // but the slow one
			runs[servertest.Receive(t, ran, "tasks catch up")]++
		}
		for id := range want {
			task := reaches(t, s, id, delaytask.Completed)
			if task.Attempt != 1 || task.CrashCount != 0 || len(task.Errors) != 0 || runs[id] > 1 {
				t.Errorf("task %d: %d runs, attempt %d, crash count %d, errors %v",
					id, runs[id], task.Attempt, task.CrashCount, task.Errors)
			}
		}
		if n := number(t, server, "SELECT COUNT(*) FROM "+cfg.DBName+".delay_task_message"); n != len(want) {
			t.Errorf("%d rows, want %d: a save that was refused is stored", n, len(want))
		}
	})
}
