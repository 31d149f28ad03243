package dbtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// supervisor is a shell process that runs servers and takes orders.
type supervisor struct {
	log     *os.File
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// startSupervisor starts the command, which runs superviseLoop. The function that it returns ends the supervisor, its
// servers and their folder.
func startSupervisor(cmd *exec.Cmd, dir string) (*supervisor, func() error, error) {
	s := new(supervisor)
	var err error
	if s.log, err = os.Create(filepath.Join(dir, "supervisor.log")); err != nil {
		return nil, nil, err
	}
	cmd.Stderr = s.log
	if s.orders, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	s.answers = bufio.NewScanner(answers)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return s, func() error {
		_ = s.orders.Close() // the supervisor may have ended already
		_ = cmd.Wait()       // its exit code comes from the last clean-up
		return errors.Join(s.log.Close(), os.RemoveAll(dir))
	}, nil
}

// order sends an order, with its arguments, and returns when it is done.
func (s *supervisor) order(order string) error {
	if _, err := io.WriteString(s.orders, order+"\n"); err != nil {
		return fmt.Errorf("the supervisor of the server is gone: %w", err)
	}
	if !s.answers.Scan() || s.answers.Text() != "done" {
		return fmt.Errorf("%s of the server failed: %s", order, reason(logged(s.log)))
	}
	return nil
}

// superviseLoop reads orders, line by line, and answers each when it is done. When its input ends, because the test is
// over or its process has died, it ends the server and removes its folder. A closed output must not end it before. Each
// way to start a server comes with functions of its own that the loop calls.
const superviseLoop = `
freeze() { # a stop reaches the threads one after the other
  kill -STOP $server || return
  while grep -L '^State:.T' /proc/$server/task/*/status 2>/dev/null | grep -q .; do sleep 0.01; done
}
thaw() { kill -CONT $server; }
spare() { # the servers may have ended by themselves
  to=$1
  shift
  crash "$@"
  mv "$dir" "$to"
}
trap '' INT TERM HUP PIPE
dir=$1
shift
while read -r order; do
  if $order "$@" </dev/null >&2; then echo done; else echo failed; fi
done
crash "$@" </dev/null >&2
rm -rf "$dir"
`

func logged(file *os.File) []byte {
	text, _ := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
	return text
}

// reason returns the line of a log that explains a failure: the last one marked as an error, else the last.
func reason(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "ERROR") && !strings.Contains(line, "Aborting") {
			return line
		}
	}
	return lines[len(lines)-1]
}
