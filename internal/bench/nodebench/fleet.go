package nodebench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// Fleet are processes on one database. It is for one goroutine.
type Fleet struct {
	start   func(context.Context) (*child.Process[Event], error)
	limit   time.Duration // for a process to become ready, or to serve
	members []*member     // in the order of their starts
	stopped int           // of them, the oldest
	news    chan struct{} // holds one element when a process has written an event
}

// NewFleet returns a fleet whose processes are started by start, which may take as long as the limit.
func NewFleet(limit time.Duration, start func(context.Context) (*child.Process[Event], error)) *Fleet {
	return &Fleet{start: start, limit: limit, news: make(chan struct{}, 1)}
}

// member is one process and its events.
type member struct {
	process *child.Process[Event]
	gone    chan struct{}

	mu             sync.Mutex
	ready, serving bool
	ran            int
	end            *Event
	err            error
}

// Start starts n more processes, and returns when all are ready.
func (f *Fleet) Start(ctx context.Context, n int) error {
	for range n {
		process, err := f.start(ctx)
		if err != nil {
			return err
		}
		m := &member{process: process, gone: make(chan struct{})}
		f.members = append(f.members, m)
		go func() {
			defer close(m.gone)
			m.ended(process.Wait(func(e Event) { f.note(m, e) }))
			f.notify()
		}()
	}
	return f.all(ctx, func(m *member) bool { return m.ready })
}

// Go ends the wait of all processes.
func (f *Fleet) Go() error {
	var errs []error
	for _, m := range f.members {
		if !m.is(func(m *member) bool { return m.serving }) {
			errs = append(errs, m.process.Go())
		}
	}
	return errors.Join(errs...)
}

// Serve calls Go, and returns when all processes serve.
func (f *Fleet) Serve(ctx context.Context) error {
	if err := f.Go(); err != nil {
		return err
	}
	return f.all(ctx, func(m *member) bool { return m.serving })
}

func (f *Fleet) all(ctx context.Context, is func(*member) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("the processes are not there after %v", f.limit))
	defer cancel()
	return f.until(ctx, func() bool {
		for _, m := range f.members {
			if !m.is(is) {
				return false
			}
		}
		return true
	})
}

// Ran returns when all processes, ended ones included, have begun n tasks together. It returns an error when ctx ends
// first, or a process ends by itself.
func (f *Fleet) Ran(ctx context.Context, want int) error {
	return f.until(ctx, func() bool {
		sum := 0
		for _, m := range f.members {
			m.mu.Lock()
			sum += m.ran
			m.mu.Unlock()
		}
		return sum >= want
	})
}

func (f *Fleet) until(ctx context.Context, is func() bool) error {
	for !is() {
		for _, m := range f.members {
			m.mu.Lock()
			err := m.err
			m.mu.Unlock()
			if err != nil {
				return err
			}
		}
		select {
		case <-f.news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// StopOldest stops the n oldest processes at once, as a deploy does, and returns when they have ended.
func (f *Fleet) StopOldest(n int) error {
	leaving := f.members[f.stopped : f.stopped+n]
	f.stopped += n
	for _, m := range leaving {
		defer m.process.End().Stop()
	}
	var errs []error
	for _, m := range leaving {
		<-m.gone
		errs = append(errs, m.err)
	}
	return errors.Join(errs...)
}

// Kill ends what has not ended.
func (f *Fleet) Kill() {
	for _, m := range f.members {
		select {
		case <-m.gone:
		default:
			_ = m.process.Kill() // it may have gone now
			<-m.gone
		}
	}
}

// Counts are how many tasks each process ran and what it claimed, once all have stopped.
func (f *Fleet) Counts() (ran []int, claims []Claims) {
	for _, m := range f.members {
		ran = append(ran, m.end.Ran)
		claims = append(claims, m.end.Claims)
	}
	return ran, claims
}

// Starts gathers when tasks began in all processes, once all have stopped. So many different ones are expected.
func (f *Fleet) Starts(want int) *lateness.Starts {
	starts := lateness.NewStarts(want)
	for _, m := range f.members {
		for _, s := range m.end.Starts {
			starts.Add(s.ID, time.Unix(0, s.At))
		}
	}
	return starts
}

func (f *Fleet) note(m *member, e Event) {
	m.mu.Lock()
	m.ready, m.serving, m.ran = m.ready || e.Ready, m.serving || e.Serving, max(m.ran, e.Ran)
	if e.End {
		m.end = &e
	}
	m.mu.Unlock()
	f.notify()
}

func (f *Fleet) notify() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// ended notes the result of the process. One without a last event has failed.
func (m *member) ended(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.end == nil {
		err = errors.New("a process has ended by itself")
	}
	m.err = err
}

func (m *member) is(is func(*member) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return is(m)
}
