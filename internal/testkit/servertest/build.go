package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Built runs the tests of a package that uses [Build], and then removes the programs.
type Built struct{ Tests interface{ Run() int } }

// Run returns the exit code of the tests.
func (b Built) Run() int {
	code := b.Tests.Run()
	if err := os.RemoveAll(programs.dir); err != nil {
		panic(err)
	}
	return code
}

var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Build returns the program of a package of this repository, such as ./cmd/delaytask. It is built once. GOFLAGS says
// whether with the race detector.
func Build(t testing.TB, pkg string, flags ...string) (program string) {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		var err error
		programs.dir, err = os.MkdirTemp("", "delaytask-programs-")
		OK(t, err)
		programs.built = map[string]string{}
	}
	if program = programs.built[pkg]; program != "" && flags == nil {
		return program
	}
	dir, err := os.MkdirTemp(programs.dir, "")
	OK(t, err)
	program = filepath.Join(dir, filepath.Base(pkg))
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", append(append([]string{"build", "-o", program}, flags...), pkg)...)
	cmd.Dir = filepath.Join(filepath.Dir(here), "../../..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	if flags == nil {
		programs.built[pkg] = program
	}
	return program
}
