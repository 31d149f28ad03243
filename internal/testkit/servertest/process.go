package servertest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Process is a program that runs beside a test.
type Process struct {
	Out, Err *Log           // what it has written
	In       io.WriteCloser // of one that [Self] has started
	t        testing.TB
	cmd      *exec.Cmd
	ended    chan struct{}
	err      error // of the end; read it after ended
	read     int   // of Out, by Says
}

// Launch starts a program. It is killed when the test ends.
func Launch(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Out: &Log{}, Err: &Log{}, t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.Out, p.Err
	OK(t, cmd.Start())
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-p.ended
		if t.Failed() {
			t.Logf("the program logged:\n%s", p.Err)
		}
		if strings.Contains(p.Err.String(), "DATA RACE") {
			t.Errorf("the program has a race:\n%s", p.Err)
		}
	})
	return p
}

// Self starts the running test binary once more. Arguments or variables tell it its role.
func Self(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	program, err := os.Executable()
	OK(t, err)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	OK(t, err)
	p := Launch(t, cmd)
	p.In = in
	return p
}

// Says waits for a line of the output that matches, after those that were found before. It returns the last group.
func (p *Process) Says(pattern string) (group string) {
	p.t.Helper()
	want := regexp.MustCompile(pattern)
	Eventually(p.t, fmt.Sprintf("the program says %q", pattern), func() bool {
		over := p.over()
		for line := range strings.Lines(p.Rest()) {
			text, whole := strings.CutSuffix(line, "\n")
			if !whole {
				break
			}
			p.read += len(line)
			if found := want.FindStringSubmatch(text); found != nil {
				group = found[len(found)-1]
				return true
			}
		}
		if over {
			p.t.Fatalf("the program ended without saying %q: %s%s", pattern, p.Out, p.Err)
		}
		return false
	})
	return group
}

// Rest is the output after what Says has found.
func (p *Process) Rest() string { return p.Out.String()[p.read:] }

func (p *Process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Signal sends the program a signal.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	OK(p.t, p.cmd.Process.Signal(sig))
}

// End waits for the end of the program and returns its exit code, which is -1 when a signal ended it.
func (p *Process) End() int {
	p.t.Helper()
	Receive(p.t, p.ended, "the program ends")
	if exit, failed := errors.AsType[*exec.ExitError](p.err); failed {
		return exit.ExitCode()
	}
	OK(p.t, p.err)
	return 0
}

// EndsWell waits for an end with the exit code 0.
func (p *Process) EndsWell() {
	p.t.Helper()
	if code := p.End(); code != 0 {
		p.t.Errorf("exit code %d: %s", code, p.Err)
	}
}

// Stops requires that the program ends in order on SIGTERM.
func (p *Process) Stops() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	p.EndsWell()
}

// Kill ends the program as a power cut would.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(os.Kill)
	Receive(p.t, p.ended, "the program is gone")
}

// Answers waits until an address answers 200.
func (p *Process) Answers(url string) {
	p.t.Helper()
	defer http.DefaultClient.CloseIdleConnections()
	Eventually(p.t, url+" answers", func() bool {
		if p.over() {
			p.t.Fatalf("the program ended before it answered: %s%s", p.Out, p.Err)
		}
		res, err := http.Get(url)
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	})
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }
