// Package bulk runs changes of many tasks in the background of a process, tells how far they are, and stops them. It
// does not know what the changes are.
package bulk

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/processor"
)

var (
	// ErrTooMany is returned by Start while as many runs are under way as a process has at once.
	ErrTooMany = errors.New("too many bulk changes are under way; wait for one to end, or stop it")

	// ErrStopped is the cause with which the context of a run ends when someone stops it.
	ErrStopped = errors.New("stopped")

	// ErrClosed is returned by Start after Close, and is the cause with which running changes end then.
	ErrClosed = errors.New("the process stops")
)

const (
	mostRunning = 4
	mostKept    = 100 // runs that have ended
)

// About says what a run is, for those who look at it.
type About struct {
	Verb, Who string
	Filter    processor.Filter

	Tasks  int       // that a dry run has counted
	Capped bool      // there are more
	AsOf   time.Time // that bounds them
}

// State is how far a run is.
type State struct {
	ID string
	About
	Began, Ended time.Time // Ended is zero while it is under way
	Done         int       // tasks that were changed
	Err          error     // why it has ended early: ErrStopped, ErrClosed, or an error of the change
}

// Outcome is how a run stands.
type Outcome string

// The outcomes.
const (
	Running Outcome = "running"
	Done    Outcome = "done"    // all was changed that matched
	Stopped Outcome = "stopped" // by someone, or with its process
	Failed  Outcome = "failed"
)

// Outcome is how the run stands.
func (s *State) Outcome() Outcome {
	switch {
	case s.Ended.IsZero():
		return Running
	case s.Err == nil:
		return Done
	case errors.Is(s.Err, ErrStopped), errors.Is(s.Err, ErrClosed):
		return Stopped
	default:
		return Failed
	}
}

// Runs are the runs of a process. The zero value is ready.
type Runs struct {
	mu     sync.Mutex
	runs   []*run // the newest last
	closed bool
	group  sync.WaitGroup
}

type run struct {
	state State
	end   context.CancelCauseFunc
}

// Start runs the change, which gets what it calls with the number of tasks that it has changed. It returns the run
// as it begins, [ErrTooMany] or [ErrClosed].
func (r *Runs) Start(about About, change func(ctx context.Context, progress func(done int)) (int, error)) (
	State, error,
) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := 0
	for _, old := range r.runs {
		if old.state.Ended.IsZero() {
			running++
		}
	}
	switch {
	case r.closed:
		return State{}, ErrClosed
	case running >= mostRunning:
		return State{}, ErrTooMany
	}
	ctx, end := context.WithCancelCause(context.Background())
	started := &run{State{ID: rand.Text(), About: about, Began: time.Now()}, end}
	r.keep(started)
	r.group.Go(func() {
		defer end(nil)
		n, err := change(ctx, func(done int) { r.update(started, func(s *State) { s.Done = done }) })
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		r.update(started, func(s *State) { s.Done, s.Err, s.Ended = n, err, time.Now() })
	})
	return started.state, nil
}

// keep remembers a run, and forgets the oldest one that has ended when there are too many.
func (r *Runs) keep(started *run) {
	r.runs = append(r.runs, started)
	if len(r.runs) > mostKept {
		i := slices.IndexFunc(r.runs, func(old *run) bool { return !old.state.Ended.IsZero() })
		if i >= 0 {
			r.runs = slices.Delete(r.runs, i, i+1)
		}
	}
}

func (r *Runs) update(of *run, change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&of.state)
}

// Get returns the run with the id, and false when this process has none.
func (r *Runs) Get(id string) (State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.find(id); found != nil {
		return found.state, true
	}
	return State{}, false
}

func (r *Runs) find(id string) *run {
	for _, known := range r.runs {
		if known.state.ID == id {
			return known
		}
	}
	return nil
}

// All returns the runs that are known, the newest first.
func (r *Runs) All() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]State, 0, len(r.runs))
	for _, known := range slices.Backward(r.runs) {
		all = append(all, known.state)
	}
	return all
}

// Stop ends a run after the batch that it is at, and reports whether it was under way.
func (r *Runs) Stop(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.find(id)
	if found == nil || !found.state.Ended.IsZero() {
		return false
	}
	found.end(ErrStopped)
	return true
}

// Close ends all runs and waits for them.
func (r *Runs) Close() {
	r.mu.Lock()
	r.closed = true
	for _, known := range r.runs {
		known.end(ErrClosed)
	}
	r.mu.Unlock()
	r.group.Wait()
}
