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
	"github.com/delaytask/delaytask/internal/testkit/stall"
)

// machine knows when this machine, its disk or its servers stood still.
var machine stall.Watch

// watched is a run of the tests during which the machine is watched.
type watched struct{ tests goleak.TestingM }

func (w watched) Run() int {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { machine.Sleep(ctx) })
	defer watch.Wait()
	defer cancel()
	return w.tests.Run()
}

// probe watches what the database needs for every answer, a commit or at least its disk, until the test ends.
func probe(t *testing.T, d dbtest.Database) {
	t.Helper()
	var commit func(context.Context) error
	if d.Kind == dbtest.SQLite { // whose only writer must not be disturbed
		file, err := os.Create(filepath.Join(t.TempDir(), "probe"))
		if err != nil {
			t.Fatal(err)
		}
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

// within fails the test when what a user may expect in seconds took longer.
func within(t *testing.T, limit time.Duration, from, to time.Time, what string) {
	t.Helper()
	took, most := to.Sub(from), allowed(limit, from, to)
	t.Logf("%s took %v of %v, allowed here %v", what, took.Round(100*time.Microsecond), limit,
		most.Round(time.Millisecond))
	if took < 0 || took > most {
		t.Errorf("%s took %v, want 0 to %v, and on this machine at most %v", what, took, limit, most)
	}
}

// allowed is the limit on this machine, which others keep busy: twice as long, and four times what it stood still in
// between or shortly before, since what it comes too late for waits for the next round.
func allowed(limit time.Duration, from, to time.Time) time.Duration {
	const shortly = 2 * time.Second
	return 2*limit + 4*machine.Still(from.Add(-shortly), to)
}

// onTime wants the first start of the task within the limit of its due time.
func onTime(t *testing.T, limit time.Duration, task *delaytask.TaskRow) {
	t.Helper()
	within(t, limit, task.Expected, task.Started, "lateness of "+string(task.Body))
}
