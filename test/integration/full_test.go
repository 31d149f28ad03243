package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

func TestServerWithAFullDiskLosesNothingAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disk := newDisk(t)
			runFull(t, dbtest.NewMortalIn(t, kind, disk.dir).Database(t), disk)
		})
	}
}

func runFull(t *testing.T, d dbtest.Database, disk disk) {
	t.Helper()
	var lines lineCount
	metrics := delaytask.NewMetrics()
	s := open(t, d, func(cfg *delaytask.Config) {
		cfg.Metrics, cfg.Logger = metrics, slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	db := pool(t, d)
	watchCompletions(t, db)
	var ran starts
	serve(t, s, "t", ran.process)
	accepted := map[string]int64{} // by name
	for i := range 50 {            // most fall due while the disk is full
		name := fmt.Sprint("before ", i)
		accepted[name] = saveBulky(t, s, name, time.Duration(i)*100*time.Millisecond)
	}

	disk.fill(t)
	begun, before := time.Now(), databaseErrors(t, metrics)
	unknown, refused := saveUntilRefused(t, s, accepted)
	judgeNoise(t, time.Since(begun), databaseErrors(t, metrics)-before-refused, int(lines.n.Load()))
	eventually(t, "it is not ready", func() bool { return !isReady(t, s) })
	disk.free(t)

	eventually(t, "it is ready again by itself", func() bool { return isReady(t, s) })
	for name, id := range unknown {
		accepted[name] = saveBulky(t, s, name, 0, delaytask.WithID(id))
		if accepted[name] != id {
			t.Errorf("saved again with id %d: %d", id, accepted[name])
		}
	}
	accepted["after"] = saveBulky(t, s, "after", 0)
	eventually(t, "everything is completed", func() bool {
		return number(t, db, "SELECT COUNT(*) FROM delay_task_message WHERE status <> 1") == 0
	})
	stored := storedTasks(t, db)
	judgeRuns(t, stored, &ran)
	for name, id := range accepted {
		if task := stored[name+bulk]; task.id != id || task.hasSameBody != 1 {
			t.Errorf("%s was accepted as task %d, and the table has task %d, %d of this body", name, id, task.id, task.hasSameBody)
		}
	}
	if len(stored) != len(accepted) {
		t.Errorf("%d tasks are stored, %d were accepted", len(stored), len(accepted))
	}
}

func isReady(t *testing.T, s *delaytask.Scheduler) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return s.Ready(ctx) == nil
}

// bulk is what each body ends with: a table has room for a little more in pages that it holds already.
var bulk = " " + strings.Repeat("x", 64<<10)

func saveBulky(t *testing.T, s *delaytask.Scheduler, name string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := s.SaveDelayTask(t.Context(), "t", name+bulk, delay, opts...)
	if err != nil {
		t.Fatalf("save %s: %v", name, err)
	}
	return id
}

// saveUntilRefused saves until callers have been told for a while that it does not work. It adds to what was accepted.
func saveUntilRefused(t *testing.T, s *delaytask.Scheduler, accepted map[string]int64) (unknown map[string]int64, refused int) {
	t.Helper()
	unknown = map[string]int64{}
	var since time.Time
	for n := 0; since.IsZero() || time.Since(since) < 3*time.Second; n++ {
		name := fmt.Sprint("during ", n)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		id, err := s.SaveDelayTask(ctx, "t", name+bulk, 0)
		cancel()
		told, isUnknown := errors.AsType[*delaytask.OutcomeUnknownError](err)
		switch {
		case err == nil:
			accepted[name] = id
			continue
		case isUnknown:
			unknown[name] = told.ID
		default:
			refused++
		}
		if since.IsZero() {
			t.Logf("after %d saves: %v", n, err)
			since = time.Now()
		}
	}
	t.Logf("%d were accepted, %d refused, of %d the outcome was unknown", len(accepted), refused, len(unknown))
	return unknown, refused
}

// disk is a disk of memory, mounted for one test.
type disk struct{ dir string }

// newDisk mounts a disk, which takes root.
func newDisk(t *testing.T) disk {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("a disk of one's own takes root, on Linux")
	}
	dir, err := os.MkdirTemp("", "full-") // not the test's own, whose name is too long for the socket of a server in it
	must(t, err)
	must(t, command("mount", "-t", "tmpfs", "delaytask-test", dir))
	t.Cleanup(func() {
		must(t, command("umount", dir))
		must(t, os.Remove(dir))
	})
	return disk{dir}
}

// fill makes the disk as small as what is on it.
func (d disk) fill(t *testing.T) {
	t.Helper()
	eventually(t, "the disk is full", func() bool { // the server may write between the look and the order
		var now syscall.Statfs_t
		must(t, syscall.Statfs(d.dir, &now))
		return d.resize((now.Blocks-now.Bfree)*uint64(now.Bsize)) == nil
	})
}

// free makes room.
func (d disk) free(t *testing.T) { t.Helper(); must(t, d.resize(1<<30)) }

func (d disk) resize(bytes uint64) error {
	return command("mount", "-o", fmt.Sprintf("remount,size=%d", bytes), d.dir)
}

func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
