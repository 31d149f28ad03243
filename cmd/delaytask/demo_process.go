package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a worker seen from the demo.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	done   chan error // what the process ended with, once
}

const stopLimit = 15 * time.Second

// startProcess runs this very program once more. Its events go to the channel.
func startProcess(o order, events chan<- event) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start it as a service: %w", err)
	}
	// Bound to no context: when the demo is interrupted, its workers stop in order as their input is closed.
	cmd := exec.Command(program, "demo", "worker")
	p := &process{cmd: cmd, done: make(chan error, 1)}
	cmd.Stderr = &p.stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go p.follow(stdout, events)
	if err := json.NewEncoder(p.stdin).Encode(o); err != nil {
		_ = p.kill()
		return nil, fmt.Errorf("give the service its order: %w", err)
	}
	return p, nil
}

// follow reads all events before it collects the process: Wait closes the pipe.
func (p *process) follow(stdout io.Reader, events chan<- event) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // half a line, from a process that was killed
		}
		e.Worker = p.pid()
		events <- e
	}
	p.done <- p.cmd.Wait()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process as a power cut would, and returns when it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	p.done <- <-p.done // for whoever asks again
	return nil
}

// stop lets the process finish what it does.
func (p *process) stop() error {
	_ = p.stdin.Close()
	select {
	case err := <-p.done:
		return p.failure(err)
	case <-time.After(stopLimit):
		return p.kill()
	}
}

// failure says what a process that ended badly had to say.
func (p *process) failure(err error) error {
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("the service ended with %w and said: %s", err, said)
	}
	return fmt.Errorf("the service ended with %w", err)
}
