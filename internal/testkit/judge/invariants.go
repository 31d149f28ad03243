package judge

import (
	"fmt"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Invariant is the number of a promise in docs/promises.md. The invariant 0 is implied there: what is stored or runs
// was saved. Those from 13 on are about schedules, and docs/testing.md says them.
type Invariant int

// OfSchedules is the first invariant about schedules. A journal without any shows nothing of these.
const OfSchedules Invariant = 13

// Invariants are those that are judged, and what a violation of each means.
var Invariants = []struct {
	Number    Invariant
	Violation string
}{
	{0, "phantom tasks: stored or run without a save"},
	{1, "accepted and lost"},
	{2, "wrong answers to saves and changes"},
	{3, "ended without success, cancel or attempts used up"},
	{4, "completed twice, or without the lease"},
	{5, "started early"},
	{7, "not caught up within the bound"},
	{8, "leases rescued late, early or unfairly; tasks quarantined for others"},
	{10, "unfinished tasks that share a key"},
	{11, "attempts burned by a stop"},
	{13, "ticks decided twice, never, or otherwise than their schedule says"},
	{14, "runs of a schedule open or at work together, or retried too late"},
	{15, "schedules behind"},
	{16, "ticks decided otherwise than a single node decides them"},
}

// Violation is a case that breaks an invariant.
type Violation struct {
	Invariant Invariant       `json:"invariant"`
	Task      int64           `json:"task,omitempty"`
	What      string          `json:"what"`
	Events    []journal.Event `json:"events"` // that show it
}

func (v Violation) String() string {
	return fmt.Sprintf("invariant %d, task %d: %s", v.Invariant, v.Task, v.What)
}
