// Package bulk runs changes of many tasks in the background of a process, tells how far they are, and stops them. The
// entries of the audit log make them known to all processes with the same database. It does not know what the changes
// are.
package bulk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/audit"
)

var (
	// ErrTooMany is returned by Start while as many runs are under way as a process has at once, or as one caller may
	// have besides others.
	ErrTooMany = errors.New("too many bulk changes are under way; wait for one to end, or stop it")

	// ErrStopped is the cause with which the context of a run ends when someone stops it.
	ErrStopped = audit.ErrStopped

	// ErrClosed is returned by Start after End, and is the cause with which running changes end then.
	ErrClosed = fmt.Errorf("%w: the process stops", ErrStopped)
)

const (
	mostRunning = 4
	mostKept    = 100 // runs that have ended
)

// About says what a run is, for those who look at it.
type About struct {
	Verb, Who string
	Filter    delaytask.Filter

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
	Outcome      Outcome
	Err          error // why it has ended early: ErrStopped, ErrClosed, an error of the change, or [Told]

	Alone    bool      // only its process knows it: it is not in the audit log
	Seen     time.Time // when its process was last seen at it; zero: it does not tell
	Stopping bool      // a caller has asked to stop it, and it is under way
	Detail   string    // the filter as a text, of a run with an entry
}

// Outcome is how a run stands.
type Outcome string

// The outcomes.
const (
	Running Outcome = "running"
	Done    Outcome = "done"    // all was changed that matched
	Stopped Outcome = "stopped" // by someone, or with its process
	Failed  Outcome = "failed"
	Lost    Outcome = "lost"    // its process was not seen at it for 30 s: it died, or does not reach the database
	Untold  Outcome = "unknown" // under way, or its process died: it does not tell, as one of an older version
)

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrStopped):
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

	beginning []string // who starts the runs whose entries are about to be stored
}

type run struct {
	state State
	end   context.CancelCauseFunc
}

// Start runs the change. begin stores its entry in the audit log, or returns nil where it has no entry; begin may be
// nil. Start returns the run as it begins, [ErrTooMany], [ErrClosed], or the error of begin.
func (r *Runs) Start(about About, begin func() (*audit.Entry, error), change Change) (State, error) {
	if err := r.reserve(about.Who); err != nil {
		return State{}, err
	}
	begun := false
	defer func() { // also where begin panics
		if !begun {
			r.release(about.Who)
		}
	}()
	var entry *audit.Entry
	if begin != nil {
		var err error
		if entry, err = begin(); err != nil {
			return State{}, err
		}
	}
	id := rand.Text()
	if entry != nil {
		id = strconv.FormatInt(entry.ID, 10)
	}
	ctx, end := context.WithCancelCause(context.Background())
	started := &run{State{
		ID: id, About: about, Began: time.Now(), Outcome: Running, Alone: entry == nil,
	}, end}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun(about.Who)
	begun = true
	if r.closed {
		end(ErrClosed)
	}
	r.keep(started)
	go func() {
		defer r.group.Done()
		defer end(nil)
		n, err := Record(ctx, entry, about, func(done int) { r.update(started, func(s *State) { s.Done = done }) },
			change)
		r.update(started, func(s *State) {
			s.Done, s.Err, s.Ended, s.Outcome, s.Stopping = n, err, time.Now(), outcomeOf(err), false
		})
	}()
	return started.state, nil
}

// release takes back what reserve has let begin.
func (r *Runs) release(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun(who)
	r.group.Done()
}

// begun takes who out of those that start a run. r.mu is held.
func (r *Runs) begun(who string) {
	i := slices.Index(r.beginning, who)
	r.beginning = slices.Delete(r.beginning, i, i+1)
}

// reserve lets one more run begin, which the caller counts as begun or not. Who has a name gets as many as it leaves to
// others at most.
func (r *Runs) reserve(who string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, own := 1, 0
	count := func(other string) {
		running++
		if who != "" && other == who {
			own++
		}
	}
	for _, other := range r.beginning {
		count(other)
	}
	for _, old := range r.runs {
		if old.state.Ended.IsZero() {
			count(old.state.Who)
		}
	}
	switch {
	case r.closed:
		return ErrClosed
	case running > mostRunning, own > 0 && own+1 > mostRunning-running:
		return ErrTooMany
	}
	r.beginning = append(r.beginning, who)
	r.group.Add(1)
	return nil
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
	found.state.Stopping = true
	found.end(ErrStopped)
	return true
}

// End ends all runs, and lets none begin.
func (r *Runs) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, known := range r.runs {
		known.end(ErrClosed)
	}
}

// Wait waits after [Runs.End] until the runs have stored their ends, or until ctx ends.
func (r *Runs) Wait(ctx context.Context) {
	all := make(chan struct{})
	go func() {
		r.group.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
	}
}
