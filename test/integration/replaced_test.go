//go:build unix

package integration

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
)

// The connections go on working on a file that no other process finds.
func TestSQLiteFileThatLosesItsNameAcceptsNothingMore(t *testing.T) {
	for how, replace := range map[string]func(t *testing.T, file string){
		"deleted": func(t *testing.T, file string) { servertest.OK(t, os.Remove(file)) },
		"renamed": func(t *testing.T, file string) { servertest.OK(t, os.Rename(file, file+".old")) },
		"replaced by a copy, as a restore does": func(t *testing.T, file string) {
			from, err := os.Open(file)
			servertest.OK(t, err)
			defer from.Close()
			to, err := os.Create(file + ".new")
			servertest.OK(t, err)
			_, err = io.Copy(to, from)
			servertest.OK(t, errors.Join(err, to.Close(), os.Rename(file+".new", file)))
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := dbtest.New(t, dbtest.SQLite)
			s, db := open(t, d, quiet), pool(t, d)
			save(t, s, "t", time.Hour)
			servertest.OK(t, s.Ready(t.Context()))
			tx := begin(t, db)
			servertest.OK(t, tx.Rollback())
			replace(t, strings.TrimPrefix(d.DSN, "sqlite:"))

			_, err := s.SaveDelayTask(t.Context(), "t", nil, time.Hour)
			isReplaced(t, "a save", err)
			_, err = s.SaveDelayTasks(t.Context(), []delaytask.Item{{Tag: "t"}, {Tag: "t"}})
			isReplaced(t, "a bulk save", err)
			tx = begin(t, db)
			_, err = s.SaveDelayTaskTx(t.Context(), tx, "t", nil, 0)
			isReplaced(t, "a save in a transaction", err)
			if err := s.Ready(t.Context()); !errors.Is(err, scheduler.ErrNotReady) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}

func isReplaced(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, delaytask.ErrFileReplaced) || errors.Is(err, delaytask.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v", what, err)
	}
}
