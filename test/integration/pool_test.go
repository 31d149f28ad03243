//go:build unix

package integration

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// hostile are the parameters of applications' pools.
var hostile = []string{
	"parseTime=true",
	"parseTime=false&interpolateParams=true",
	"parseTime=true&loc=America%2FNew_York",
	"parseTime=true&loc=America%2FNew_York&interpolateParams=true",
	"clientFoundRows=true",
	"clientFoundRows=true&interpolateParams=true",
	"time_zone=%27%2B09:00%27",
	"time_zone=%27%2B09:00%27&parseTime=true&loc=Asia%2FTokyo&interpolateParams=true",
	"sql_mode=%27ANSI_QUOTES%27",
	"sql_mode=%27NO_BACKSLASH_ESCAPES%27&interpolateParams=true",
	"sql_mode=%27ANSI,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT%27&interpolateParams=true",
	"sql_mode=%27%27",
	"charset=latin1",
	"charset=latin1&interpolateParams=true",
	"collation=utf8mb4_general_ci",
	"collation=latin1_swedish_ci&parseTime=true&interpolateParams=true",
}

// nasty contains what a character set, a quoting rule or a naive copy could change.
const nasty = "{\"a\":\"ü 漢 \U0001F600 \x00 \x1a \x7f \\\\ \\' '' ` \\\" % _ -- /* */ ? :a \r\n\t\"} "

// fold is an hour that New York has twice: as local time it would be ambiguous.
var fold = []string{"2030-11-03 05:30:00.123456", "2030-11-03 06:30:00.123457"}

func TestSettingsOfTheCallersPoolChangeNothing(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		open(t, d) // makes the tables
		truth := pool(t, d, "charset=utf8mb4")
		for _, params := range hostile {
			t.Run(params, func(t *testing.T) {
				callers := pool(t, d, params)
				s, err := scheduler.New(t.Context(), callers, config(t, quiet))
				servertest.OK(t, err)
				defer servertest.Stop(t, s)
				roundTrip(t, s, callers, truth)
			})
		}
	})
}

// quiet drops the log: warnings about a lax sql_mode are tested elsewhere.
func quiet(cfg *scheduler.Config) { cfg.Logger = slog.New(slog.DiscardHandler) }

// roundTrip saves through the pool, alone and in a transaction, reads the rows by another connection, and runs the
// tasks.
func roundTrip(t *testing.T, s *scheduler.Scheduler, callers, truth *sql.DB) {
	const tag = "Order:close/1.0_a-B"
	seen := make(chan *delaytask.Task, 10)
	failed := map[int64]bool{}
	serve(t, s, tag, func(_ context.Context, task *delaytask.Task) error {
		if !failed[task.ID] {
			failed[task.ID] = true
			return fmt.Errorf("%s", nasty)
		}
		seen <- task
		return nil
	}, processor.Concurrency(1))
	key := "key " + nasty
	options := []delaytask.Option{delaytask.WithKey(key), delaytask.WithHeader("h", nasty)}
	alone, err := s.SaveDelayTask(t.Context(), tag, nasty, 0, options...)
	servertest.OK(t, err)
	got := servertest.Receive(t, seen, "task runs")
	if string(got.Body) != nasty || got.Key != key || got.Headers["h"] != nasty || got.Tag != tag {
		t.Errorf("the processor saw %+v", got)
	}
	task := reaches(t, s, alone, delaytask.Completed)
	if len(task.Errors) != 1 || task.Errors[0].Error != nasty {
		t.Errorf("the error came back as %+v", task.Errors)
	}
	within(t, 2*time.Second, task.Expected, task.Started, "lateness")

	tx := begin(t, callers)
	var inTx []int64
	for i, moment := range fold {
		at, err := time.Parse("2006-01-02 15:04:05.999999", moment)
		servertest.OK(t, err)
		newYork, err := time.LoadLocation("America/New_York")
		servertest.OK(t, err)
		id, err := s.SaveDelayTaskTx(t.Context(), tx, tag, nasty, 0,
			delaytask.WithTime(at.In(newYork)), delaytask.WithKey(key+fmt.Sprint(i)))
		servertest.OK(t, err)
		inTx = append(inTx, id)
	}
	commit(t, tx)
	for i, id := range inTx {
		row := columns(t, truth, id)
		if row["message_body"] != nasty || row["task_key"] != key+fmt.Sprint(i) || row["tag"] != tag {
			t.Errorf("stored %q, %q, %q", row["message_body"], row["task_key"], row["tag"])
		}
		if row["expected_time"] != fold[i] || row["due_time"] != fold[i] {
			t.Errorf("stored as expected %s and due %s, want %s", row["expected_time"], row["due_time"], fold[i])
		}
		made, err := time.Parse("2006-01-02 15:04:05.999999", row["create_time"])
		if err != nil || time.Since(made).Abs() > time.Minute {
			t.Errorf("made at %s, %v; want now in UTC", row["create_time"], err)
		}
	}
	for i := range fold {
		if _, err := s.Cancel(t.Context(), delaytask.Key(tag, key+fmt.Sprint(i))); err != nil { // finds it by its key
			t.Error(err)
		}
	}
}

func TestPoolKeepsItsSettings(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		const size = 22
		db := pool(t, d,
			"sql_mode=%27ANSI_QUOTES%27", "innodb_lock_wait_timeout=33", "time_zone=%27%2B09:00%27", "charset=latin1")
		db.SetMaxOpenConns(size)
		db.SetMaxIdleConns(3)
		s, err := scheduler.New(t.Context(), db, config(t, quiet))
		servertest.OK(t, err)
		t.Cleanup(func() { servertest.Stop(t, s) })
		wantOwnSessions(t, db, 1) // some of the others are reserved, or in use
		p, ran := ids()
		serve(t, s, "t", p)
		for range 50 {
			save(t, s, "t", 0)
		}
		for range 50 {
			servertest.Receive(t, ran, "task runs")
			wantOwnSessions(t, db, 1)
		}
		servertest.Stop(t, s)
		wantOwnSessions(t, db, size) // none of them is in use any more
		if stats := db.Stats(); stats.MaxOpenConnections != size || stats.InUse != 0 || stats.OpenConnections > 3 {
			t.Errorf("the pool became %+v", stats)
		}
	})
}

// wantOwnSessions takes n connections out of the pool at a time and checks their sessions.
func wantOwnSessions(t *testing.T, db *sql.DB, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range n {
		conn, err := db.Conn(ctx)
		servertest.OK(t, err)
		defer conn.Close()
		var got, want struct {
			mode, zone, charset  string
			lockWait, autocommit int
		}
		want.mode, want.zone, want.charset, want.lockWait, want.autocommit = "ANSI_QUOTES", "+09:00", "latin1", 33, 1
		const session = "SELECT @@sql_mode, @@time_zone, @@character_set_client, " +
			"@@innodb_lock_wait_timeout, @@autocommit"
		err = conn.QueryRowContext(ctx, session).Scan(&got.mode, &got.zone, &got.charset,
			&got.lockWait, &got.autocommit)
		if err != nil || got != want {
			t.Errorf("a session of the pool is %+v, %v; want %+v", got, err, want)
		}
	}
}

// A machine's own zone shows only in a process that was started with it.
func TestProcessWithALocalZoneStoresUTC(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		c := serving(t, d, "TZ=America/New_York", childPool+"=parseTime=true&loc=Local")
		before := time.Now().Add(-time.Second)
		id := c.save("t", 300*time.Millisecond)
		c.Says("^run ")
		reaches(t, s, id, delaytask.Completed)
		for column, value := range columns(t, db, id) {
			if !strings.HasSuffix(column, "_time") || column == "delay_time" {
				continue
			}
			at, err := time.Parse("2006-01-02 15:04:05.999999", value)
			if err != nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
				t.Errorf("%s is %s, %v; want a moment of this test in UTC", column, value, err)
			}
		}
	})
}
