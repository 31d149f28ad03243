//go:build unix

package integration

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

func TestSaveThatReachesNoServerIsNotStored(t *testing.T) {
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := dbtest.NewDisposable(t, kind)
			db := server.Database(t)
			s := open(t, db, quiet)
			save(t, s, "t", time.Hour)
			server.Kill(t)
			notStored(t, s, "nothing listens", syscall.ECONNREFUSED)

			listener, err := net.Listen("tcp", mysqlConfig(t, db).Addr) // which says nothing to those who connect
			servertest.OK(t, err)
			notStored(t, s, "nothing is answered", nil)
			servertest.OK(t, listener.Close())

			server.Start(t)
			save(t, s, "t", time.Hour)
			var rows int
			const count = "SELECT COUNT(*) FROM delay_task_message"
			servertest.OK(t, servertest.SQL(t, db.DSN).QueryRowContext(t.Context(), count).Scan(&rows))
			if rows != 2 {
				t.Errorf("%d tasks are stored, want 2", rows)
			}
		})
	}
}

// notStored saves in every way, and wants to hear that nothing is stored, and why.
func notStored(t *testing.T, s *scheduler.Scheduler, what string, cause error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	saves := map[string]func() error{
		"alone":      func() error { _, err := s.SaveDelayTask(ctx, "t", nil, 0); return err },
		"with a key": func() error { _, err := s.SaveDelayTask(ctx, "t", nil, 0, delaytask.WithKey("k")); return err },
		"together": func() error {
			_, err := s.SaveDelayTasks(ctx, []delaytask.Item{{Tag: "t"}, {Tag: "t"}})
			return err
		},
	}
	var all sync.WaitGroup
	for name, save := range saves {
		for range 7 {
			all.Go(func() {
				err := save()
				if !errors.Is(err, delaytask.ErrNotStored) || errors.Is(err, delaytask.ErrOutcomeUnknown) ||
					!errors.Is(err, context.DeadlineExceeded) || cause != nil && !errors.Is(err, cause) {
					t.Errorf("%s, saved %s: %v", what, name, err)
				}
			})
		}
	}
	all.Wait()
}
