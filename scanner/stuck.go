package scanner

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// stuck remembers overdue rows that other nodes take in all of the first turns. These nodes may live and have no free
// slot for hours. So a node that has nothing else to do takes what it has seen for long.
type stuck struct {
	mu   sync.Mutex
	seen map[string]map[int64]left // by tag, of the last pass
}

// of returns the rows of a tag in a pass that have been there for that long. Nodes that do nothing else find the same
// ones. In a random order each of them wins some.
func (s *stuck) of(tag string, rows []row.Due, others func(id int64, tag string) bool, long time.Duration) []row.Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, seen := time.Now(), map[int64]left{}
	var found []row.Due
	for _, d := range rows {
		if d.Due.IsZero() || !others(d.ID, tag) {
			continue
		}
		l, known := s.seen[tag][d.ID]
		if !known || l.version != d.Version {
			l = left{d.Version, now}
		}
		if seen[d.ID] = l; now.Sub(l.since) >= long {
			found = append(found, d)
		}
	}
	if s.seen == nil {
		s.seen = map[string]map[int64]left{}
	}
	if s.seen[tag] = seen; len(seen) == 0 {
		delete(s.seen, tag)
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	return found
}
