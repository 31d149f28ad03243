package metrics

import "sync"

const (
	claimWon   = "won"
	claimLost  = "lost"
	claimError = "error"
)

const (
	maxTags  = 200
	otherTag = "other"
)

// tagLabels bounds the number of series: the first tags it meets keep their names, all later ones share one label. Tags
// are free text, and a service that makes them up as it goes must not fill a Prometheus server.
type tagLabels struct {
	mu    sync.Mutex
	known map[string]struct{}
}

func (t *tagLabels) label(tag string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[tag]; ok {
		return tag
	}
	if len(t.known) >= maxTags {
		return otherTag
	}
	if t.known == nil {
		t.known = make(map[string]struct{})
	}
	t.known[tag] = struct{}{}
	return tag
}
