package dbtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// obedient is a process that keeps servers and does what it is told.
type obedient struct {
	log    *os.File
	orders io.WriteCloser
	obeyed *bufio.Scanner
}

// keep starts the command, which runs obey. The function ends it, and with it the servers and their folder.
func keep(cmd *exec.Cmd, dir string) (*obedient, func() error, error) {
	k := new(obedient)
	var err error
	if k.log, err = os.Create(filepath.Join(dir, "keeper.log")); err != nil {
		return nil, nil, err
	}
	cmd.Stderr = k.log
	if k.orders, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	k.obeyed = bufio.NewScanner(answers)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return k, func() error {
		_ = k.orders.Close() // the keeper may have gone already
		_ = cmd.Wait()       // its exit code is that of the last clean-up
		return errors.Join(k.log.Close(), os.RemoveAll(dir))
	}, nil
}

// order gives an order, which may have arguments behind it, and returns when it is done.
func (k *obedient) order(order string) error {
	if _, err := io.WriteString(k.orders, order+"\n"); err != nil {
		return fmt.Errorf("the keeper of the server is gone: %w", err)
	}
	if !k.obeyed.Scan() || k.obeyed.Text() != "done" {
		return fmt.Errorf("%s of the server failed: %s", order, reason(logged(k.log)))
	}
	return nil
}

// obey does what it reads, line by line, and answers each when it is done. When its input ends, because the test is
// over or its process has died, the server and its folder go away; that nobody reads the answers any more must not end
// it before. The functions it calls differ by the way the server is started.
const obey = `
freeze() { # a stop reaches the threads one after the other
  kill -STOP $server || return
  while grep -L '^State:.T' /proc/$server/task/*/status 2>/dev/null | grep -q .; do sleep 0.01; done
}
thaw() { kill -CONT $server; }
spare() { # they may have gone by themselves
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
