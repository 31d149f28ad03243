// Package service tests `delaytask serve` as its users run it: processes of the built program, over HTTP.
package service

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	_ "github.com/delaytask/delaytask/sqlite"
)

// patience is how long an answer may take, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// server is a running `delaytask serve`.
type server struct {
	servertest.Client
	*servertest.Process
}

// environment is the environment of a program: its database, and nothing of the machine.
func environment(db dbtest.Database, more ...string) []string {
	return append([]string{
		"DELAYTASK_DSN=" + db.DSN, "DELAYTASK_MIGRATE=true", "DELAYTASK_SERVER_LISTEN=127.0.0.1:0",
		"DELAYTASK_PUSH_ALLOW=127.0.0.1/32", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
	}, more...)
}

// serve starts a server with further variables and returns when it serves. It is killed when the test ends.
func serve(t *testing.T, db dbtest.Database, env ...string) *server {
	t.Helper()
	s := launch(t, environment(db, env...))
	s.serves()
	return s
}

// serves waits until the server prints its address.
func (s *server) serves() {
	s.TB.Helper()
	s.URL = s.Says(`^delaytask serve.* at (http[^\s,]+)`)
}

// launch starts `delaytask serve` with those variables alone.
func launch(t *testing.T, environ []string, args ...string) *server {
	t.Helper()
	return &server{servertest.Client{TB: t}, command(t, environ, append([]string{"serve"}, args...)...)}
}

func (s *server) finish(status int, code string, task wire.Popped) {
	s.TB.Helper()
	s.Want(status, code, "POST", "/v1/tasks/"+task.ID.String()+"/finish", `{"token":"`+task.Token+`"}`)
}

// run runs another command of the program to its end.
func run(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := command(t, environ, args...)
	code = p.End()
	return p.Out.String(), p.Err.String(), code
}

// command starts a command of the program with those variables alone.
func command(t *testing.T, environ []string, args ...string) *servertest.Process {
	t.Helper()
	cmd := exec.Command(servertest.Build(t, "./cmd/delaytask"), args...)
	cmd.Dir, cmd.Env = t.TempDir(), environ
	return servertest.Launch(t, cmd)
}

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true // no connection outlives its test
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil {      // servers are killed here on purpose
		panic(err)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait more than they compute
		panic(err)
	}
	goleak.VerifyTestMain(servertest.Built{Tests: dbtest.WithServers(m)})
}
