// Package fleet supervises the processes of a chaos run: it starts them, signals them, notes how they end, and starts
// the next ones.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/proxy"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// Fleet is all processes of a run.
type Fleet struct {
	Dir     string // of journals and logs
	Journal *journal.File

	mu    sync.Mutex
	slots []*Slot
	errs  []error
}

// Note writes an event of the injector's.
func (f *Fleet) Note(e journal.Event) error {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	return f.Journal.Append(e)
}

// Slot is the place of one process. When the process ends, the next one takes the place, with another name.
type Slot struct {
	Name      string
	Proxy     *proxy.Proxy // between the process and its database
	Namespace string       // of the network that it lives in; "": the machine's

	fleet *Fleet
	order role.Order
	done  chan struct{} // closed when no process takes the place any more

	mu     sync.Mutex
	wanted bool
	lives  int
	life   *life
}

// Add fills a new place. [Slot.Await] returns when the process has begun.
func (f *Fleet) Add(ctx context.Context, s *Slot, o role.Order) {
	s.fleet, s.order, s.done, s.wanted = f, o, make(chan struct{}), true
	f.mu.Lock()
	f.slots = append(f.slots, s)
	f.mu.Unlock()
	s.begin(ctx)
	go s.keep(ctx)
}

// Of returns the places of a role.
func (f *Fleet) Of(name string) []*Slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.slots), func(s *Slot) bool { return s.order.Role != name || !s.isWanted() })
}

// Journals are the files that the processes wrote.
func (f *Fleet) Journals() ([]string, error) {
	return filepath.Glob(filepath.Join(f.Dir, "*.journal"))
}

// Err returns the errors of the supervision.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

func (f *Fleet) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// startAgain is how soon the next process follows, as with a supervisor.
const startAgain = 200 * time.Millisecond

func (s *Slot) keep(ctx context.Context) {
	defer close(s.done)
	for {
		l := s.current()
		<-l.gone
		if err := l.noteEnd(s.fleet); err != nil {
			s.fleet.failed(err)
			return
		}
		close(l.noted)
		if lateness.Pass(ctx, startAgain) != nil || !s.begin(ctx) {
			return
		}
	}
}

// begin starts the next process of the place, unless the place is to be empty.
func (s *Slot) begin(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted {
		return false
	}
	s.lives++
	o := s.order
	o.Name = fmt.Sprintf("%s.%d", s.Name, s.lives)
	if s.lives > 1 {
		o.Poisons = 0 // the first life has enough
	}
	o.Seed += uint64(s.lives) << 32
	o.Journal = filepath.Join(s.fleet.Dir, o.Name+".journal")
	o.Log = s.Log()
	s.life = start(ctx, s.Namespace, o)
	return true
}

func (s *Slot) current() *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

func (s *Slot) isWanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

func (s *Slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = false
}

// Life is the name of the process that has the place now.
func (s *Slot) Life() string { return s.current().name }

// Log is the file that all processes of the place write to.
func (s *Slot) Log() string { return filepath.Join(s.fleet.Dir, s.Name+".log") }

// Pid is the number of the process that has the place now, 0 when it could not be started.
func (s *Slot) Pid() int { return s.current().pid() }

// Await returns when the process has begun. It returns an error when it has not within the limit.
func (s *Slot) Await(ctx context.Context, limit time.Duration) error {
	overdue := time.After(limit)
	for {
		l := s.current()
		select {
		case <-l.up:
			return nil
		case <-l.noted:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-overdue:
			return fmt.Errorf("%s has not begun within %v", s.Name, limit)
		}
		select {
		case <-s.done:
			return errors.Join(fmt.Errorf("%s does not begin", s.Name), s.fleet.Err())
		case <-time.After(startAgain):
		}
	}
}

// Kill ends the process with SIGKILL and returns its name when it is gone.
func (s *Slot) Kill() (string, error) { return s.end(syscall.SIGKILL) }

// Restart asks the process to stop, and returns its name when it has.
func (s *Slot) Restart() (string, error) { return s.end(syscall.SIGTERM) }

func (s *Slot) end(sig os.Signal) (string, error) {
	l := s.current()
	_ = l.signal(sig) // it may have ended by itself
	select {
	case <-l.noted:
		return l.name, nil
	case <-s.done:
		return l.name, s.fleet.Err()
	case <-time.After(endWithin):
		return l.name, fmt.Errorf("%s has not ended within %v", l.name, endWithin)
	}
}

// endWithin is more than a stop takes in the worst case: its grace, and calls of a database that does not answer.
const endWithin = time.Minute

// Leave asks the process to stop and leaves the place empty.
func (s *Slot) Leave() (string, error) {
	s.abandon()
	return s.end(syscall.SIGTERM)
}

// End kills what still lives and returns when all places are empty.
func (f *Fleet) End() error {
	f.mu.Lock()
	slots := slices.Clone(f.slots)
	f.mu.Unlock()
	for _, s := range slots {
		s.abandon()
		_ = s.current().signal(syscall.SIGKILL) // it may have ended
	}
	for _, s := range slots {
		<-s.done
	}
	return f.Err()
}

// Ask sends the process a signal that it takes for an order. It returns false while the process is not ready for it.
func (s *Slot) Ask(order os.Signal) bool {
	l := s.current()
	select {
	case <-l.up:
		return l.signal(order) == nil
	default:
		return false
	}
}

// Freeze stops the process with SIGSTOP.
func (s *Slot) Freeze() (string, error) { return s.tell(syscall.SIGSTOP, journal.NodeFrozen) }

// Thaw lets it go on.
func (s *Slot) Thaw() (string, error) { return s.tell(syscall.SIGCONT, journal.NodeThawed) }

func (s *Slot) tell(sig os.Signal, kind journal.Kind) (string, error) {
	l := s.current()
	if l.signal(sig) != nil {
		return l.name, nil // it has ended, and that is noted
	}
	return l.name, s.fleet.Note(journal.Event{Node: l.name, Kind: kind})
}
