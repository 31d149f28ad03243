package journal

import (
	"slices"
	"sync"
)

// Memory is a journal in memory. The zero value is an empty one.
type Memory struct {
	mu     sync.Mutex
	events []Event
}

// Append adds events at the end.
func (m *Memory) Append(events ...Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, events...)
}

// Events returns what was appended so far.
func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}
