package decide

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/delaytask/delaytask/internal/row"
)

// Hash returns the hash of all that a definition says. Schedules with equal hashes need no write to become the same.
func Hash(s *row.Schedule) [32]byte {
	encoded, err := json.Marshal([]any{
		s.Spec, s.Tag, s.Body, s.Headers, s.MaxAttempts, s.TTR, s.Priority, s.Overlap, s.Missed, s.MaxOpen,
		s.StartWithin, s.Jitter, s.PauseAfter, s.MaxRuns, s.KeepRuns, s.RetryPastNext,
	})
	if err != nil {
		panic(err) // numbers, strings and bytes always marshal
	}
	return sha256.Sum256(encoded)
}
