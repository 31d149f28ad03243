package save

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// maxAlone bounds how many requests are sent by themselves at a time, each on a connection of its own.
const maxAlone = 4

// sendAlone sends each request by itself: one of them waits for another process's transaction, and only that one shall.
// The lane goes on meanwhile. A request that meets the lock again waits among the slow retries.
func (s *Saver) sendAlone(requests []*request) (again []*request) {
	if requests[0].alone {
		requests[0].locked = true
		s.locked.add(requests[0])
		return stillWanted(requests)
	}
	places := make(chan struct{}, maxAlone)
	requests = slices.Clone(requests)
	s.Go(func() {
		for _, r := range requests {
			places <- struct{}{}
			r.alone = true
			s.Go(func() {
				left := []*request{r}
				for n := 0; len(left) > 0 && !r.locked && !s.locked.has(r) && s.Life.Err() == nil; n++ {
					if n > 0 {
						lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestBackoff)))
					}
					left = s.insert(left)
				}
				<-places
				s.retrySlowly(left)
			})
		}
	})
	return nil
}

// slowRetries is how many requests are sent again at a time that wait for a lock. It leaves half of the connections for
// rows with keys to the lane and to first tries.
const slowRetries = 2

// retrySlowly sends a request until it has its answer, beside few others: each try may wait a second for a lock.
func (s *Saver) retrySlowly(requests []*request) {
	for n := 0; len(requests) > 0; n++ {
		lifecycle.Sleep(s.Life, lifecycle.Backoff(min(n, longestBackoff)))
		s.slow <- struct{}{}
		if s.Life.Err() != nil {
			answerAll(requests, processor.ErrClosed)
			requests = nil
		} else if requests = stillWanted(requests); len(requests) > 0 {
			requests = s.insert(requests)
		}
		<-s.slow
	}
}

// holdBackLocked takes out requests with a key that another process's transaction held when it was last tried.
func (s *Saver) holdBackLocked(requests []*request) (rest []*request) {
	locked, rest := batch.Split(requests, s.locked.has)
	if len(locked) == 0 || locked[0].alone {
		return requests
	}
	s.sendAlone(locked)
	return rest
}

// maxUnknowns is how often the outcome of a batch may be unknown before the database is asked whether that is due to
// its rows.
const maxUnknowns = 4

// isolate sends each request by itself when the database answers other questions, but not these requests. One whose
// caller has been told that the outcome is unknown is not sent any more.
func (s *Saver) isolate(requests []*request) (again []*request) {
	ctx, cancel := s.Call() // the time for the requests may be up
	defer cancel()
	if _, err := s.Store.Now(ctx); err != nil {
		return requests
	}
	wanted, _ := batch.Split(requests, func(r *request) bool { return !r.isAbandoned() })
	if len(wanted) == 0 || requests[0].alone {
		return wanted
	}
	return s.sendAlone(wanted)
}

// lockedFor is how long a key counts as locked after its lock was last met. Requests that wait for it try about every
// second.
const lockedFor = 5 * time.Second

// lockedKeys remembers the keys that another process's transaction holds.
type lockedKeys struct {
	mu    sync.Mutex
	until map[row.TagKey]time.Time
}

func (l *lockedKeys) add(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil {
		l.until = map[row.TagKey]time.Time{}
	}
	now := time.Now()
	maps.DeleteFunc(l.until, func(_ row.TagKey, until time.Time) bool { return now.After(until) })
	for n := range r.remaining() {
		if n.row.Key != "" {
			l.until[n.key()] = now.Add(lockedFor)
		}
	}
}

func (l *lockedKeys) remove(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range r.remaining() {
		delete(l.until, n.key())
	}
}

func (l *lockedKeys) has(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.until) == 0 {
		return false
	}
	for n := range r.remaining() {
		if until, met := l.until[n.key()]; met && time.Now().Before(until) {
			return true
		}
	}
	return false
}
