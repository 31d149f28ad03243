package journal

import (
	"slices"
	"sync"
)

// pageSize is how many events a page of a journal in memory has room for.
const pageSize = 256

// Memory is a journal in memory. The zero value is an empty one. It is kept in pages, because events are large and a
// slice that grows copies them again and again.
type Memory struct {
	mu    sync.Mutex
	pages [][]Event
}

// Append adds events at the end.
func (m *Memory) Append(events ...Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(events) > 0 {
		last := len(m.pages) - 1
		if last < 0 || len(m.pages[last]) == pageSize {
			m.pages = append(m.pages, make([]Event, 0, pageSize))
			last++
		}
		n := min(len(events), pageSize-len(m.pages[last]))
		m.pages[last] = append(m.pages[last], events[:n]...)
		events = events[n:]
	}
}

// Events returns what was appended so far.
func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Concat(m.pages...)
}
