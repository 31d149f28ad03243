package examples

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

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

// process is a program that runs beside the test.
type process struct {
	cmd   *exec.Cmd
	lines chan string // of its output
}

// run starts a program, and kills it when the test ends before it does.
func run(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), env...)
	out, err := p.cmd.StdoutPipe()
	servertest.OK(t, err)
	p.cmd.Stderr = p.cmd.Stdout
	servertest.OK(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case p.lines <- scanner.Text():
			default: // the output is bounded
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// says waits for a line that matches, and returns its first group.
func (p *process) says(t *testing.T, pattern string) string {
	t.Helper()
	want, late := regexp.MustCompile(pattern), time.After(time.Minute)
	var said []string
	for {
		select {
		case line, more := <-p.lines:
			if found := want.FindStringSubmatch(line); found != nil {
				return found[len(found)-1]
			}
			if !more {
				t.Fatalf("the program ended without saying %q: %q", pattern, said)
			}
			said = append(said, line)
		case <-late:
			t.Fatalf("the program did not say %q within a minute: %q", pattern, said)
		}
	}
}

// stops sends SIGTERM and waits for an end in order.
func (p *process) stops(t *testing.T) {
	t.Helper()
	servertest.OK(t, p.cmd.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	var said []string
	for line := range p.lines {
		said = append(said, line)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v: %q", err, said)
	}
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
	base := server.says(t, `serves at (http://[\d.:]+)`)
	ready(t, base+"/readyz")
	c, err := client.New(base)
	servertest.OK(t, err)
	t.Cleanup(func() {
		_ = c.Stop(context.Background())
		server.stops(t)
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
