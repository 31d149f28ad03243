package main

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
)

// node is a process of a fleet.
type node = child.Process[nodeEvent]

// fleet are processes on one database. It is for one goroutine.
type fleet struct {
	start   func(context.Context) (*node, error)
	all     []*member // in the order of their starts
	stopped int       // of them, the oldest
}

// member is a process and what it has told.
type member struct {
	*node
	gone chan struct{}

	mu   sync.Mutex // guards what follows
	told nodeEvent  // of all events
	err  error
}

// add starts n more processes, and returns when all are ready.
func (f *fleet) add(ctx context.Context, n int) error {
	for range n {
		process, err := f.start(ctx)
		if err != nil {
			return err
		}
		m := &member{node: process, gone: make(chan struct{})}
		f.all = append(f.all, m)
		go func() {
			defer close(m.gone)
			err := process.Wait(m.note)
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.err = err; err == nil && !m.told.End {
				m.err = errors.New("a process has ended by itself")
			}
		}()
	}
	return f.await(ctx, bench.RunLimit, func(all nodeEvent) bool { return all.Ready })
}

func (m *member) note(e nodeEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Ready, e.Serving, e.Ran = e.Ready || m.told.Ready, e.Serving || m.told.Serving, max(e.Ran, m.told.Ran)
	m.told = e
}

// read returns what the process has told until now.
func (m *member) read() (nodeEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told, m.err
}

// release ends the wait of all processes.
func (f *fleet) release() error {
	for _, m := range f.all {
		if told, _ := m.read(); !told.Serving {
			if err := m.Go(); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve releases all processes, and returns when they serve.
func (f *fleet) serve(ctx context.Context) error {
	if err := f.release(); err != nil {
		return err
	}
	return f.await(ctx, bench.RunLimit, func(all nodeEvent) bool { return all.Serving })
}

// ran returns when all processes, ended ones included, have begun n tasks together, or when the time is up: the table
// shows what is missing.
func (f *fleet) ran(ctx context.Context, n int, limit time.Duration) error {
	err := f.await(ctx, limit, func(all nodeEvent) bool { return all.Ran >= n })
	if errors.Is(err, errTimeIsUp) {
		return nil
	}
	return err
}

var errTimeIsUp = errors.New("the processes are not so far in time")

// await returns when what all processes have told together is enough. It returns errTimeIsUp, or the error of one that
// fails.
func (f *fleet) await(ctx context.Context, limit time.Duration, enough func(all nodeEvent) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeIsUp)
	defer cancel()
	for {
		all := nodeEvent{Ready: true, Serving: true}
		for _, m := range f.all {
			told, err := m.read()
			if err != nil {
				return err
			}
			all.Ready, all.Serving, all.Ran = all.Ready && told.Ready, all.Serving && told.Serving, all.Ran+told.Ran
		}
		if enough(all) {
			return nil
		}
		if err := lateness.Pass(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// stop stops the n oldest processes at once, as a deploy does, and returns when they have ended.
func (f *fleet) stop(n int) (err error) {
	leaving := f.all[f.stopped : f.stopped+n]
	f.stopped += n
	for _, m := range leaving {
		defer m.End().Stop()
	}
	for _, m := range leaving {
		<-m.gone
		err = errors.Join(err, m.err)
	}
	return err
}

// kill ends what has not ended.
func (f *fleet) kill() {
	for _, m := range f.all {
		select {
		case <-m.gone:
		default:
			_ = m.Kill() // it may have gone now
			<-m.gone
		}
	}
}

// starts gathers when tasks began in all processes, once all have stopped. So many different ones are expected.
func (f *fleet) starts(want int) *lateness.Starts {
	starts := lateness.NewStarts(want)
	for _, m := range f.all {
		for _, s := range m.told.Starts {
			starts.Add(s.ID, time.Unix(0, s.At))
		}
	}
	return starts
}

// spread is the largest deviation of a process from an even share of the tasks, in percent of that share, once all have
// stopped. Without tasks it is 0.
func (f *fleet) spread() float64 {
	sum, worst := 0, 0.0
	for _, m := range f.all {
		sum += m.told.Ran
	}
	share := float64(sum) / float64(max(1, len(f.all)))
	for _, m := range f.all {
		worst = max(worst, math.Abs(float64(m.told.Ran)-share))
	}
	return 100 * worst / max(1, share)
}

// wasted is how many percent of the tried claims were not won, once all have stopped. Without tries it is 0.
func (f *fleet) wasted() float64 {
	tried, won := 0, 0
	for _, m := range f.all {
		tried += m.told.Tried
		won += m.told.Won
	}
	return 100 * float64(tried-won) / float64(max(1, tried))
}
