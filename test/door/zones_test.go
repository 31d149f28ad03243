// Package door tests what a user meets first: the built program on a machine that has nothing but it.
package door

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// alone builds a program statically into an empty root folder, and returns what runs it there.
func alone(t *testing.T, pkg string) func(args ...string) (out string, err error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("chroot wants root")
	}
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "program"), pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return func(args ...string) (string, error) {
		run := exec.Command("chroot", append([]string{root, "/program"}, args...)...)
		run.Env = []string{"DELAYTASK_DSN=sqlite:/tasks.db", "DELAYTASK_MIGRATE=true"}
		out, err := run.CombinedOutput()
		return string(out), err
	}
}

func TestTheCommandBringsItsZones(t *testing.T) {
	t.Parallel()
	run := alone(t, "../../cmd/delaytask")
	out, err := run("schedule", "create", "daily", "30 2 * * *", "--zone", "Europe/Berlin", "--tag", "report")
	if err != nil || !strings.Contains(out, " CET ") && !strings.Contains(out, " CEST ") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = run("schedule", "preview", "@daily", "--zone", "Asia/Beijing")
	if err == nil || !strings.Contains(out, "did you mean Asia/Shanghai?") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAProgramWithoutZoneDataIsToldWhereItIs(t *testing.T) {
	t.Parallel()
	out, err := alone(t, "./testdata/zoned")()
	if err == nil || !strings.Contains(out, `import _ "time/tzdata"`) || strings.Contains(out, "unknown") {
		t.Errorf("%v: %s", err, out)
	}
}
