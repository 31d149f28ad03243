//go:build unix

package integration

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/testkit/stall"
)

// machine detects when this machine, its disk or its servers stall.
var machine stall.Watch

// watched runs the tests while the machine is watched.
type watched struct{ tests goleak.TestingM }

func (w watched) Run() int {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { machine.Sleep(ctx) })
	defer watch.Wait()
	defer cancel()
	return w.tests.Run()
}

// probe measures commits of the database, or at least writes to its disk, until the test ends.
func probe(t *testing.T, d dbtest.Database) {
	t.Helper()
	var commit func(context.Context) error
	if d.Kind == dbtest.SQLite { // whose only writer must not be disturbed
		file, err := os.Create(filepath.Join(t.TempDir(), "probe"))
		servertest.OK(t, err)
		t.Cleanup(func() { _ = file.Close() })
		commit = func(context.Context) error {
			_, err := file.WriteAt([]byte{1}, 0)
			return errors.Join(err, file.Sync())
		}
	} else {
		db := pool(t, d)
		execute(t, db, "CREATE TABLE probe (n INT NOT NULL)")
		execute(t, db, "INSERT INTO probe VALUES (0)")
		commit = func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "UPDATE probe SET n = n + 1")
			return err
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { machine.Probe(ctx, commit) })
	t.Cleanup(watch.Wait)
	t.Cleanup(cancel)
}

// within fails the test when something took longer than the limit.
func within(t *testing.T, limit time.Duration, from, to time.Time, what string) {
	t.Helper()
	took, most := to.Sub(from), allowed(limit, from, to)
	t.Logf("%s took %v of %v, allowed here %v", what, took.Round(100*time.Microsecond), limit,
		most.Round(time.Millisecond))
	if took < 0 || took > most {
		t.Errorf("%s took %v, want 0 to %v, and on this machine at most %v", what, took, limit, most)
	}
}

// allowed is the limit on this machine, which may be busy: twice as long, and four times the stalls during or shortly
// before it, because what is missed waits for the next round.
func allowed(limit time.Duration, from, to time.Time) time.Duration {
	const shortly = 2 * time.Second
	return 2*limit + 4*machine.Still(from.Add(-shortly), to)
}

// onTime requires the first start of the task within the limit of its due time.
func onTime(t *testing.T, limit time.Duration, task *delaytask.TaskRow) {
	t.Helper()
	within(t, limit, task.Expected, task.Started, "lateness of "+string(task.Body))
}
