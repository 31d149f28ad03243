// Package service tests `delaytask serve` as its users run it: processes of the built program, over HTTP.
package service

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
)

// patience is how long a command may take, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// server is a running `delaytask serve`.
type server struct {
	servertest.Client
	cmd    *exec.Cmd
	said   *servertest.Log // standard output
	logged *servertest.Log // standard error
	ended  chan struct{}
	err    error // of the end; read it after ended
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
	servertest.Eventually(s.TB, "the server serves", func() bool {
		select {
		case <-s.ended:
			s.TB.Fatalf("the server ended: %s", s.logged)
		default:
		}
		first, _, whole := strings.Cut(s.said.String(), "\n")
		if !whole {
			return false
		}
		_, after, found := strings.Cut(first, " at ")
		if !found {
			s.TB.Fatalf("the server says %q", first)
		}
		s.URL = strings.TrimRight(strings.Fields(after)[0], ",")
		return true
	})
}

// launch starts `delaytask serve` with those variables alone.
func launch(t *testing.T, environ []string, args ...string) *server {
	t.Helper()
	s := &server{
		Client: servertest.Client{TB: t}, said: &servertest.Log{}, logged: &servertest.Log{},
		ended: make(chan struct{}),
	}
	s.cmd = exec.Command(program, append([]string{"serve"}, args...)...)
	s.cmd.Dir, s.cmd.Env = t.TempDir(), environ
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.logged
	servertest.OK(t, s.cmd.Start())
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended already
		<-s.ended
		if t.Failed() {
			t.Logf("the server logged:\n%s", s.logged)
		}
		if strings.Contains(s.logged.String(), "DATA RACE") {
			t.Errorf("the server has a race:\n%s", s.logged)
		}
	})
	return s
}

func (s *server) signal(sig os.Signal) {
	s.TB.Helper()
	servertest.OK(s.TB, s.cmd.Process.Signal(sig))
}

// end waits for the end of the process and returns its exit code, which is -1 when a signal ended it.
func (s *server) end() int {
	s.TB.Helper()
	servertest.Receive(s.TB, s.ended, "the server ends")
	exit, failed := errors.AsType[*exec.ExitError](s.err)
	switch {
	case s.err == nil:
		return 0
	case failed:
		return exit.ExitCode()
	}
	s.TB.Fatal(s.err)
	return 0
}

// stops requires that the server ends in order on SIGTERM.
func (s *server) stops() {
	s.TB.Helper()
	s.signal(syscall.SIGTERM)
	s.endsWell()
}

func (s *server) endsWell() {
	s.TB.Helper()
	if code := s.end(); code != 0 {
		s.TB.Errorf("exit code %d", code)
	}
}

func (s *server) finish(status int, code string, task wire.Popped) {
	s.TB.Helper()
	s.Want(status, code, "POST", "/v1/tasks/"+task.ID.String()+"/finish", `{"token":"`+task.Token+`"}`)
}

// kill ends the server as a power cut would.
func (s *server) kill() {
	s.TB.Helper()
	servertest.OK(s.TB, s.cmd.Process.Kill())
	servertest.Receive(s.TB, s.ended, "the server is gone")
}

// run runs another command of the program to its end.
func run(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
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

// program is the built delaytask.
var program string

// built runs the tests with a built program.
type built struct{ tests goleak.TestingM }

func (b built) Run() int {
	dir, err := os.MkdirTemp("", "delaytask-service-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "delaytask")
	args := append([]string{"build", "-o", program}, buildFlags...)
	if out, err := exec.Command("go", append(args, "../../cmd/delaytask")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	return b.tests.Run()
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
	goleak.VerifyTestMain(built{dbtest.WithServers(m)})
}
