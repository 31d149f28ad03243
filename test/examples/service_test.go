package examples

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// built are the programs, each built once.
var built struct {
	sync.Mutex
	dir string
}

// build returns the program of a package of this module.
func build(t *testing.T, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "delaytask-examples")
		servertest.OK(t, err)
		built.dir = dir
	}
	program := filepath.Join(built.dir, filepath.Base(pkg))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if out, err := exec.Command("go", "build", "-o", program, "../../"+pkg).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return program
}

// run starts a program, and kills it when the test ends before it does.
func run(t *testing.T, env []string, name string, args ...string) *servertest.Process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	return servertest.Launch(t, cmd)
}

// service is a server of its own for the test: its address, and a client of it.
func service(t *testing.T) (env []string, c *client.Client) {
	t.Helper()
	program := build(t, "cmd/delaytask")
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	server := run(t, []string{
		"DELAYTASK_SERVER_LISTEN=127.0.0.1:0", "DELAYTASK_DSN=" + dsn,
		"DELAYTASK_SECRET=a secret of this test, long enough",
	}, program, "serve")
	base := server.Says(`serves at (http://[\d.:]+)`)
	ready(t, base+"/readyz")
	c, err := client.New(base)
	servertest.OK(t, err)
	t.Cleanup(func() {
		_ = c.Stop(context.Background())
		server.Stops()
	})
	return []string{"DELAYTASK_URL=" + base}, c
}

func ready(t *testing.T, url string) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	servertest.Eventually(t, "the service is ready", func() bool {
		res, err := http.Get(url)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}
