//go:build unix

package integration

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// Settings of an application's pool, or of a server, that once kept a process from starting or spoilt what it saved.
func TestPoolsWithUnusualSettingsWork(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		settings := [][]string{
			{"columnsWithAlias=true"}, {"sql_safe_updates=1"}, {"charset=utf8mb3"}, {"charset=utf8mb3", "sql_mode=''"},
		}
		if d.Kind == dbtest.MariaDB {
			settings = append(settings,
				[]string{"sql_mode='EMPTY_STRING_IS_NULL'"}, []string{"alter_algorithm='INSTANT'"})
		}
		for _, set := range settings {
			t.Run(strings.Join(set, " "), func(t *testing.T) {
				t.Parallel()
				worksOn(t, pool(t, dbtest.New(t, d.Kind), set...))
			})
		}
	})
}

func worksOn(t *testing.T, db *sql.DB) {
	t.Helper()
	s, err := scheduler.New(t.Context(), db, config(t))
	servertest.OK(t, err)
	defer servertest.Stop(t, s)
	ran := make(chan string, 2)
	serve(t, s, "t", func(_ context.Context, task *delaytask.Task) error {
		ran <- strings.Join([]string{task.Headers["h"], task.Key, string(task.Body)}, " ")
		return nil
	}, processor.Concurrency(1))
	const all = "ü😀 é😀 ö😀"
	options := []delaytask.Option{delaytask.WithHeader("h", "ü😀"), delaytask.WithKey("é😀")}
	tx := begin(t, db)
	id, err := s.SaveDelayTaskTx(t.Context(), tx, "t", "ö😀", 0, options...)
	servertest.OK(t, err)
	commit(t, tx)
	if got := servertest.Receive(t, ran, "the task of the transaction runs"); got != all {
		t.Errorf("saved in a transaction it ran with %q, want %q", got, all)
	}
	reaches(t, s, id, delaytask.Completed)
	_, err = s.SaveDelayTask(t.Context(), "t", "ö😀", 10*time.Millisecond, options...)
	servertest.OK(t, err)
	if got := servertest.Receive(t, ran, "the task runs"); got != all {
		t.Errorf("it ran with %q, want %q", got, all)
	}
}

// Each start says what keeps it from working, and what to do.
func TestAStartNamesTheSettingThatItCannotWorkWith(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		of := dbtest.New(t, d.Kind)
		refused := func(db *sql.DB, want string) {
			t.Helper()
			s, err := scheduler.New(t.Context(), db, config(t))
			if err == nil {
				servertest.Stop(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		refused(pool(t, of, "sql_select_limit=1"), "remove sql_select_limit")
		db := pool(t, of)
		locks, err := db.Conn(t.Context())
		servertest.OK(t, err)
		defer locks.Close()
		_, err = locks.ExecContext(t.Context(), "LOCK TABLES delay_task_message READ")
		servertest.OK(t, err)
		refused(db, "holds LOCK TABLES")
		_, err = locks.ExecContext(t.Context(), "UNLOCK TABLES")
		servertest.OK(t, err)
	})
}
