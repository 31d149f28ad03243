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
	s.wakeWaiting()
}

func (s *Store) wakeWaiting() {
	close(s.unlocked)
	s.unlocked = make(chan struct{})
}

// LockRange locks a range of the due index, as another transaction does that has searched it at REPEATABLE READ, until
// unlock is called. No row is locked, but a write that puts one there waits as for a locked row. covers says which
// tags and statuses the range has.
func (s *Store) LockRange(covers func(tag string, status row.Status) bool) (unlock func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranges = append(s.ranges, &covers)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ranges = slices.DeleteFunc(s.ranges, func(r *func(string, row.Status) bool) bool { return r == &covers })
		s.wakeWaiting()
	})
}

// landing is where a write puts a row.
type landing struct {
	id     int64
	tag    string // of a new row; else the stored row tells
	status row.Status
}

// landings says that the rows come to have the status.
func landings(ids []int64, status row.Status) []landing {
	into := make([]landing, len(ids))
	for i, id := range ids {
		into[i] = landing{id: id, status: status}
	}
	return into
}

func (s *Store) covered(l landing) bool {
	tag := l.tag
	if r, stored := s.tasks.rows[l.id]; stored {
		tag = r.Tag
	}
	return slices.ContainsFunc(s.ranges, func(covers *func(string, row.Status) bool) bool {
		return (*covers)(tag, l.status)
	})
}

// Locked implements [store.Finder].
func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return under(ctx, s, "find locked tasks", func() []int64 {
		return slices.DeleteFunc(row.Distinct(ids), func(id int64) bool { return !s.isLocked(id) })
	})
}

func (s *Store) isLocked(id int64) bool { return s.locked[id] > 0 }

// enterRows takes the mutex when none of the rows is locked, and no place where one is put.
func (s *Store) enterRows(ctx context.Context, op string, ids []int64, into ...landing) error {
	var timeout <-chan time.Time
	for {
		if err := s.enter(ctx, op); err != nil {
			return err
		}
		if !slices.ContainsFunc(ids, s.isLocked) && !slices.ContainsFunc(into, s.covered) {
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
