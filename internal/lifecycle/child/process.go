// Package child starts the running executable once more, in a role: for what needs a process of its own to be measured,
// or killed.
//
// The parent calls [Start] with an order; the child, which knows its role by its arguments, calls [Serve].
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Process is a child process. It writes events to its standard output. They arrive even when it is killed, because the
// pipe outlives it.
type Process[E any] struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events chan E // closed when the process has gone
	err    error  // what it ended with; read it after events is closed
}

// Start starts this program with the arguments and writes its order, which [Serve] reads there. The end of ctx kills
// it. It returns an error when the program cannot be found or started, or the order cannot be written.
func Start[E any](ctx context.Context, order any, args ...string) (*Process[E], error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return StartProgram[E](ctx, program, order, args...)
}

// StartProgram does the same with another program that reads such orders: an older version of this one.
func StartProgram[E any](ctx context.Context, program string, order any, args ...string) (*Process[E], error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	p := &Process[E]{cmd: cmd, stdin: stdin, events: make(chan E)}
	go p.follow(ctx, stdout)
	if err := json.NewEncoder(stdin).Encode(order); err != nil {
		return nil, errors.Join(fmt.Errorf("give the child its order: %w", err), p.Kill())
	}
	return p, nil
}

// follow reads to the end before it collects the process: Wait closes the pipe.
func (p *Process[E]) follow(ctx context.Context, stdout io.Reader) {
	defer close(p.events)
	for events := json.NewDecoder(stdout); ; {
		var e E
		if events.Decode(&e) != nil {
			break // the end, or half an event of a process that was killed
		}
		select {
		case p.events <- e:
		case <-ctx.Done():
		}
	}
	p.err = p.cmd.Wait()
}

// Last returns the last event of a process, once it has ended. It returns an error when the process failed, or wrote no
// event.
func (p *Process[E]) Last() (E, error) {
	e, ok := <-p.events
	if err := p.Stop(); err != nil {
		return e, err
	}
	if !ok {
		return e, errors.New("the child ended without a word")
	}
	return e, nil
}

// Listen passes events to f until that returns false, the process ends, or the time is up.
func (p *Process[E]) Listen(limit time.Duration, f func(E) bool) {
	overdue := time.After(limit)
	for {
		select {
		case e, ok := <-p.events:
			if !ok || !f(e) {
				return
			}
		case <-overdue:
			return
		}
	}
}

// Kill ends the process as a power cut would, and drops the unread events.
func (p *Process[E]) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the child: %w", errors.Join(err, p.Stop()))
	}
	for range p.events {
		continue
	}
	return nil
}

// Pid is the process's number on this machine.
func (p *Process[E]) Pid() int { return p.cmd.Process.Pid }

// Go ends [Narrator.Await] in the process. It returns an error when the process has ended.
func (p *Process[E]) Go() error {
	if _, err := io.WriteString(p.stdin, "{}\n"); err != nil {
		return fmt.Errorf("let the child go: %w", err)
	}
	return nil
}

// Signal sends the process a signal. It returns an error when it has ended.
func (p *Process[E]) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal the child: %w", err)
	}
	return nil
}

// Wait passes the events to f until the process has ended. It returns an error when the process failed.
func (p *Process[E]) Wait(f func(E)) error {
	for e := range p.events {
		f(e)
	}
	if p.err != nil {
		return fmt.Errorf("the child did not end well: %w", p.err)
	}
	return nil
}

const stopLimit = 45 * time.Second

// Stop asks the process to finish, and drops the unread events. After 45 s it kills it. It returns an error when the
// process failed.
func (p *Process[E]) Stop() error {
	defer p.End().Stop()
	return p.Wait(func(E) {})
}

// End is Stop for a caller that reads the events: it does not wait. It returns the timer that kills the process after
// 45 s, to be stopped when the process has ended.
func (p *Process[E]) End() *time.Timer {
	_ = p.stdin.Close() // it may have gone already
	return time.AfterFunc(stopLimit, func() { _ = p.cmd.Process.Kill() })
}

// Serve is the child's side: it reads the order from in, and runs the role. The order is no argument, because others
// can read arguments and a DSN may contain a password. The context of the role ends when the parent closes its end of
// in, or dies. It returns an error when the order cannot be read, or the error of the role.
func Serve[O any](
	ctx context.Context, in io.Reader, out io.Writer, role func(context.Context, O, *Narrator) error,
) error {
	var order O
	orders := json.NewDecoder(in)
	if err := orders.Decode(&order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &Narrator{events: json.NewEncoder(out), let: make(chan struct{})}
	go func() {
		var word struct{}
		if orders.Decode(&word) == nil {
			close(t.let)
			_, _ = io.Copy(io.Discard, in)
		}
		cancel() // any end is the end
	}()
	return role(ctx, order, t)
}

// Narrator writes events for the parent, each whole in one write. It is safe for concurrent use.
type Narrator struct {
	mu     sync.Mutex
	events *json.Encoder
	let    chan struct{} // closed by the parent's Go
}

// Await returns when the parent calls [Process.Go], for processes that begin together. It returns the cause of ctx when
// that ends first.
func (t *Narrator) Await(ctx context.Context) error {
	select {
	case <-t.let:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Tell sends one event.
func (t *Narrator) Tell(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.events.Encode(event) // a parent that no longer reads has closed the input too
}
