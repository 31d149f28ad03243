package memstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// lockWait is how long a write waits for a row that another transaction has locked.
const lockWait = time.Second

var errLocked = errors.New("another transaction holds a lock on one of the tasks")

// Lock locks the rows as another transaction would, until unlock is called. They can be read, but a write that names
// one of them waits, and after a second fails with [row.ClassLocked].
func (s *Store) Lock(ids ...int64) (unlock func()) {
	ids = slices.Clone(ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.locked[id]++
	}
	return sync.OnceFunc(func() { s.unlock(ids) })
}

func (s *Store) unlock(ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.locked[id]--; s.locked[id] == 0 {
			delete(s.locked, id)
		}
	}
	close(s.unlocked)
	s.unlocked = make(chan struct{})
}

// Locked implements [store.Finder].
func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return under(ctx, s, "find locked tasks", func() []int64 {
		return slices.DeleteFunc(row.Distinct(ids), func(id int64) bool { return !s.isLocked(id) })
	})
}

func (s *Store) isLocked(id int64) bool { return s.locked[id] > 0 }

// enterRows takes the mutex when none of the rows is locked.
func (s *Store) enterRows(ctx context.Context, op string, ids []int64) error {
	var timeout <-chan time.Time
	for {
		if err := s.enter(ctx, op); err != nil {
			return err
		}
		if !slices.ContainsFunc(ids, s.isLocked) {
			return nil
		}
		unlocked := s.unlocked
		s.mu.Unlock()

		if timeout == nil {
			timeout = time.After(lockWait)
		}
		select {
		case <-unlocked:
		case <-ctx.Done():
		case <-timeout:
			return &row.Error{Class: row.ClassLocked, Op: op, Err: errLocked}
		}
	}
}
