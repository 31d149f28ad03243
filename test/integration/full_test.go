//go:build unix

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestServerWithAFullDiskLosesNothingAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []dbtest.Kind{dbtest.MariaDB, dbtest.MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disk := newDisk(t)
			outages(t, dbtest.NewDisposableIn(t, kind, disk.dir).Database(t), 1, func(c *callers) {
				disk.fill(t)
				c.suffer(t, 3*time.Second)
				servertest.Eventually(t, "it is not ready", func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					return c.s.Ready(ctx) != nil
				})
				disk.free(t)
			})
		})
	}
}

// disk is a disk of memory, mounted for one test.
type disk struct{ dir string }

// newDisk mounts a disk, which takes root.
func newDisk(t *testing.T) disk {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("a disk of one's own takes root, on Linux")
	}
	dir, err := os.MkdirTemp("", "full-") // the name of the test's own is too long for a server's socket
	must(t, err)
	must(t, command("mount", "-t", "tmpfs", "delaytask-test", dir))
	t.Cleanup(func() {
		must(t, command("umount", dir))
		must(t, os.Remove(dir))
	})
	return disk{dir}
}

// fill shrinks the disk to its content.
func (d disk) fill(t *testing.T) {
	t.Helper()
	servertest.Eventually(t, "the disk is full", func() bool { // the server may write between reading and remounting
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
	servertest.OK(t, err)
}
