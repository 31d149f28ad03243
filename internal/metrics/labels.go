package metrics

import (
	"sync"
)

// What became of a save.
const (
	SaveStored    = "stored"
	SaveDuplicate = "duplicate" // an unfinished task carries the key
	SaveConflict  = "conflict"  // the id belongs to another task
	SaveRefused   = "refused"   // the input was wrong, or too many saves were waiting
	SaveUnknown   = "unknown"   // the outcome could not be learnt in time
	SaveFailed    = "failed"    // the database could not store it
)

// What became of an attempt.
const (
	RunCompleted   = "completed"
	RunRetried     = "retried"
	RunFailed      = "failed" // attempts used up, or permanent
	RunPanicked    = "panicked"
	RunCancelled   = "cancelled"
	RunSnoozed     = "snoozed"
	RunReleased    = "released"   // interrupted by a stop, no attempt spent
	RunLeaseLost   = "lease_lost" // the lease has passed on
	RunSkippedLate = "skipped_late"
	RunFailedLate  = "failed_late"
)

// What a rescue did with a lease that was over.
const (
	RescueReturned    = "returned" // pending again
	RescueQuarantined = "quarantined"
)

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
