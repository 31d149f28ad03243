package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// ChildCommand is the argument that makes this program a process of the fleet.
const ChildCommand = "child"

type life struct {
	name  string
	proc  *child.Process[role.State] // nil when it could not be started
	up    chan struct{}              // closed when it has begun
	gone  chan struct{}              // closed when it has ended
	noted chan struct{}              // closed when that is in the journal
	err   error                      // how it ended; read it after gone

	mu     sync.Mutex
	states []role.State // as reported
}

func start(ctx context.Context, namespace string, o role.Order) *life {
	l := &life{name: o.Name, up: make(chan struct{}), gone: make(chan struct{}), noted: make(chan struct{})}
	started := make(chan struct{})
	go func() { // a thread that has entered a network ends with its goroutine
		if namespace != "" {
			runtime.LockOSThread()
			l.err = enter(namespace)
		}
		if l.err == nil {
			l.proc, l.err = run(ctx, o)
		}
		close(started)
	}()
	<-started
	if l.err != nil {
		close(l.gone)
		return l
	}
	go func() {
		l.err = l.proc.Wait(l.note)
		close(l.gone)
	}()
	return l
}

func run(ctx context.Context, o role.Order) (*child.Process[role.State], error) {
	if o.Program != "" {
		return child.StartProgram[role.State](ctx, o.Program, o, ChildCommand)
	}
	return child.Start[role.State](ctx, o, ChildCommand)
}

func (l *life) note(s role.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.states = append(l.states, s); len(l.states) == 1 {
		close(l.up)
	}
}

func (l *life) signal(sig os.Signal) error {
	if l.proc == nil {
		return l.err
	}
	return l.proc.Signal(sig)
}

func (l *life) pid() int {
	if l.proc == nil {
		return 0
	}
	return l.proc.Pid()
}

// noteEnd notes a process that did not end well. One that ends well notes that itself.
func (l *life) noteEnd(f *Fleet) error {
	if l.proc == nil {
		return fmt.Errorf("start %s: %w", l.name, l.err)
	}
	if l.err == nil {
		return nil
	}
	return f.Note(journal.Event{Node: l.name, Kind: journal.NodeCrash, Detail: l.err.Error()})
}

// States returns the reports of the process that has the place now.
func (s *Slot) States() []role.State {
	l := s.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.states)
}

// enter moves the calling thread, which must be locked, into a network that `ip netns` has made.
func enter(namespace string) error {
	file, err := os.Open(filepath.Join("/run/netns", namespace))
	if err != nil {
		return fmt.Errorf("enter a network: %w", err)
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network %s: %w", namespace, err)
	}
	return nil
}
