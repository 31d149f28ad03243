// Package service tests `delaytask serve` as its users run it: processes of the built program, over HTTP.
package service

import (
	"bytes"
	"context"
	"errors"
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

// patience is how long a command may take, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// server is a running `delaytask serve`.
type server struct {
	servertest.Client
	*servertest.Process
	said, logged *servertest.Log
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
	cmd := exec.Command(servertest.Build(t, "./cmd/delaytask"), append([]string{"serve"}, args...)...)
	cmd.Dir, cmd.Env = t.TempDir(), environ
	p := servertest.Launch(t, cmd)
	return &server{servertest.Client{TB: t}, p, p.Out, p.Err}
}

func (s *server) finish(status int, code string, task wire.Popped) {
	s.TB.Helper()
	s.Want(status, code, "POST", "/v1/tasks/"+task.ID.String()+"/finish", `{"token":"`+task.Token+`"}`)
}

// run runs another command of the program to its end.
func run(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, servertest.Build(t, "./cmd/delaytask"), args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), environ, &out, &errs
	if err := cmd.Run(); err != nil {
		exit, failed := errors.AsType[*exec.ExitError](err)
		if !failed {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), errs.String(), code
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
