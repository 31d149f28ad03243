package push

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask"
)

// serving is the state of Run.
type serving struct {
	*Registry
	failing bool
	seen    map[string]time.Time // when a tag that is registered with the scheduler last had a receiver
	refused map[string]bool      // tags of receivers that cannot be registered
	closed  map[int64]bool       // receivers whose secrets cannot be opened
}

// read reads the table. While the database does not answer, the receivers stay as they were.
func (s *serving) read(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	receivers, reading, err := s.Store.Receivers(limited)
	if err != nil {
		if !s.failing && ctx.Err() == nil {
			s.Log.Warn("the registered receivers cannot be read; those that were alive are called on", "err", err)
		}
		s.failing = true
		return
	}
	s.failing = false
	targets, closed := s.targets(receivers, reading.Time)
	s.logClosed(closed)
	d := newDirectory(targets, *s.directory.Load())
	s.directory.Store(&d)
	s.register(d)
	s.unregister(d)
}

// logClosed logs once for each receiver that it cannot be called.
func (s *serving) logClosed(closed map[int64]error) {
	for id, err := range closed {
		if !s.closed[id] {
			s.Log.Error("a registered receiver is not called: its secret cannot be opened", "receiver", id, "err", err)
		}
	}
	clear(s.closed)
	for id := range closed {
		s.closed[id] = true
	}
}

// register serves the tags that have receivers.
func (s *serving) register(d directory) {
	now := time.Now()
	for tag := range d {
		if _, served := s.seen[tag]; served {
			s.seen[tag] = now
			continue
		}
		if s.reserved(tag) {
			s.refuse(tag, delaytask.ErrTagRegistered)
			continue
		}
		if err := s.Scheduler.Register(tag, s.deliver(), s.Options(tag)...); err != nil {
			s.refuse(tag, err)
			continue
		}
		s.seen[tag] = now
		delete(s.refused, tag)
	}
}

func (s *serving) refuse(tag string, err error) {
	if !s.refused[tag] {
		s.Log.Warn("receivers are not called with the tasks of a tag", "tag", tag, "err", err)
	}
	s.refused[tag] = true
}

// unregister ends the service of tags that have had no receiver for a while.
func (s *serving) unregister(d directory) {
	for tag, last := range s.seen {
		if d[tag] == nil && time.Since(last) >= s.Grace {
			s.Scheduler.Unregister(tag)
			delete(s.seen, tag)
		}
	}
	for tag := range s.refused {
		if d[tag] == nil {
			delete(s.refused, tag)
		}
	}
}

const purgeEvery = 10 * time.Minute

// Run keeps this process in step with the registered receivers until ctx ends. What it has registered with the
// scheduler stays, for tasks that still run. It must be called once.
func (r *Registry) Run(ctx context.Context) {
	s := &serving{Registry: r, seen: map[string]time.Time{}, refused: map[string]bool{}, closed: map[int64]bool{}}
	every := time.NewTicker(r.Every)
	defer every.Stop()
	purge := time.NewTimer(rand.N(purgeEvery)) // so that many processes do not do it together
	defer purge.Stop()
	for ctx.Err() == nil {
		s.read(ctx)
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-every.C:
		case <-purge.C:
			r.purge(ctx)
			purge.Reset(purgeEvery)
		}
	}
}

func (r *Registry) purge(ctx context.Context) {
	if _, err := r.Store.PurgeReceivers(ctx); err != nil && ctx.Err() == nil {
		r.Log.Warn("expired receivers could not be deleted", "err", err)
	}
}
