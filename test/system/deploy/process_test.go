package deploy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// process is a program that listens.
type process struct {
	cmd   *exec.Cmd
	ended chan error
	log   bytes.Buffer // complete when it has ended
}

func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	check(t, cmd.Start())
	go func() { p.ended <- cmd.Wait() }()
	return p
}

// await asks until the answer is 200, or the program has ended.
func (p *process) await(t *testing.T, url string) {
	t.Helper()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		res, err := http.Get(url)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-p.ended:
			t.Fatalf("%s did not answer: %v\n%s", url, err, &p.log)
		case <-every.C:
		}
	}
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	check(t, p.cmd.Process.Signal(os.Interrupt))
	if err := <-p.ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the stop: %v\n%s", err, &p.log)
	}
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
