package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servertest.Built{Tests: m}) }

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
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	server := run(t, []string{
		"DELAYTASK_SERVER_LISTEN=127.0.0.1:0", "DELAYTASK_DSN=" + dsn,
		"DELAYTASK_SECRET=a secret of this test, long enough",
	}, servertest.Build(t, "./cmd/delaytask"), "serve")
	base := server.Says(`serves at (http://[\d.:]+)`)
	server.Answers(base + "/readyz")
	c, err := client.New(base)
	servertest.OK(t, err)
	t.Cleanup(func() {
		_ = c.Stop(context.Background())
		server.Stops()
	})
	return []string{"DELAYTASK_URL=" + base}, c
}
