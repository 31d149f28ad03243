package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/processor"
)

// process is a worker as the demo sees it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	done   chan error // what the process ended with, once
}

const stopLimit = 15 * time.Second

// startProcess starts this executable once more. Its events go to the channel.
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
	p.done <- <-p.done // for the next reader
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

// failure is the error of a process that failed, with what it wrote.
func (p *process) failure(err error) error {
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("the service ended with %w and said: %s", err, said)
	}
	return fmt.Errorf("the service ended with %w", err)
}

// order is what the demo writes to a worker's standard input. The worker stops when that is closed, so none outlives
// the demo. A DSN contains a password, so it is passed neither in the arguments nor in the environment, where others
// could read it.
type order struct {
	DSN    string `json:"dsn"`
	Prefix string `json:"prefix"`
	Save   bool   `json:"save"` // save the tasks of the script first
}

// event is a line of a worker's standard output.
type event struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name,omitempty"` // of the scene
	ID      int64     `json:"id,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Due     time.Time `json:"due,omitzero"`
	At      time.Time `json:"at,omitzero"` // by the worker's own clock
	Error   string    `json:"error,omitempty"`
	Worker  int       `json:"-"` // pid, known to the reader
}

const (
	eventSaved   = "saved"
	eventReady   = "ready"
	eventStarted = "started"
	eventEnded   = "ended"
)

// workerCommand is the service of the demo: a process that can be killed.
func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "The demo's service (started by the demo)",
		Hidden: true,
		Args:   wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			role := func(ctx context.Context, o order, n *child.Narrator) error {
				return (&worker{o, n}).run(ctx, a.logger(config.Log{Level: "error"}))
			}
			return child.Serve(cmd.Context(), a.stdin, a.stdout, role)
		},
	}
}

type worker struct {
	order order
	*child.Narrator
}

func (w *worker) run(ctx context.Context, log *slog.Logger) error {
	s, err := delaytask.Open(ctx, w.order.DSN, delaytask.Config{
		Logger: log,
		// The demo must not delete tasks of others.
		Retention: delaytask.Retention{Completed: -1, Cancelled: -1, Failed: -1},
	})
	if err != nil {
		return err
	}
	return errors.Join(w.serve(ctx, s), s.Stop(context.WithoutCancel(ctx)))
}

// serve runs the tasks until ctx ends, which is when the demo closes the input.
func (w *worker) serve(ctx context.Context, s *delaytask.Scheduler) error {
	for _, tag := range tagsOf(script) {
		err := s.Register(w.order.Prefix+tag, processor.Func(w.process),
			processor.RetryBackoff(processor.Constant(mailBackoff)))
		if err != nil {
			return err
		}
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if w.order.Save {
		if err := w.save(ctx, s); err != nil {
			return err
		}
	}
	w.Tell(event{Kind: eventReady})
	<-ctx.Done()
	return nil
}

func (w *worker) save(ctx context.Context, s *delaytask.Scheduler) error {
	for _, scene := range script {
		if scene.plainSQL {
			continue
		}
		if scene.every != 0 {
			if err := w.schedule(ctx, s, scene); err != nil {
				return err
			}
			continue
		}
		id, err := s.SaveDelayTask(ctx, w.order.Prefix+scene.Tag, map[string]string{"name": scene.Name}, scene.Delay,
			delaytask.WithKey(scene.Name), delaytask.WithTTR(scene.TTR))
		if err != nil {
			return err
		}
		w.Tell(event{Kind: eventSaved, Name: scene.Name, ID: id})
	}
	return nil
}

// schedule saves a schedule that ticks for the first time in one to two seconds.
func (w *worker) schedule(ctx context.Context, s *delaytask.Scheduler, of scene) error {
	first := time.Duration(time.Now().Add(2*time.Second).Unix()) * time.Second
	when := delaytask.Spec{Lines: []string{fmt.Sprintf("@every %v/%v", of.every, first%of.every)}}
	_, err := s.SaveSchedule(ctx, w.order.Prefix+of.Name, when, w.order.Prefix+of.Tag,
		map[string]string{"name": of.Name}, delaytask.WithMaxRuns(ticks))
	w.Tell(event{Kind: eventSaved, Name: of.Name})
	return err
}

// process reads the clock first: the demo judges by it whether the task started in time.
func (w *worker) process(ctx context.Context, task *processor.Task) error {
	at := time.Now()
	var body struct{ Name string }
	if err := json.Unmarshal(task.Body, &body); err != nil {
		return processor.Permanent(err)
	}
	e := event{Kind: eventStarted, Name: body.Name, ID: task.ID, Attempt: task.Attempt, Due: task.Due, At: at}
	w.Tell(e)
	err := w.work(ctx, strings.TrimPrefix(task.Tag, w.order.Prefix), task)
	e.Kind, e.At = eventEnded, time.Now()
	if err != nil {
		e.Error = err.Error()
	}
	w.Tell(e)
	return err
}

func (w *worker) work(ctx context.Context, tag string, task *processor.Task) error {
	switch {
	case tag == "mail.send" && task.Attempt <= 2:
		return errors.New("the mail server is busy")
	case tag == "report.build":
		select {
		case <-time.After(reportTakes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
