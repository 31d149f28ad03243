package report

import (
	"time"

	"github.com/delaytask/delaytask"
)

// Reason says, for programs, why a task is not running now.
type Reason string

// The reasons that an explanation gives.
const (
	ReasonNotDue      Reason = "not_due"
	ReasonRetry       Reason = "waiting_for_retry" // an attempt failed and the next one is not due
	ReasonPaused      Reason = "paused"
	ReasonUnserved    Reason = "unserved"    // no live node has a processor for the tag
	ReasonLocked      Reason = "locked"      // another transaction holds the row
	ReasonWaiting     Reason = "waiting"     // due, and waiting for a free slot
	ReasonLeased      Reason = "leased"      // it is executing
	ReasonLeaseAhead  Reason = "lease_ahead" // its executor is gone; the database's clock was set back since the claim
	ReasonLeaseOver   Reason = "lease_over"  // its executor is gone; a rescue will end the lease
	ReasonFinished    Reason = "finished"
	ReasonQuarantined Reason = "quarantined" // failed because it lost its executor too often
	ReasonBroken      Reason = "broken"      // its row cannot be read
)

// Explanation says why a task has not run, or what has become of it.
type Explanation struct {
	Task   delaytask.TaskRow // without its body
	Reason Reason
	Text   string // a sentence for people
}

// ScheduleExplanation says how a schedule stands, or what became of one of its ticks.
type ScheduleExplanation struct {
	Schedule delaytask.Schedule
	Tick     time.Time              // which tick was asked about; zero: the schedule
	History  delaytask.ScheduleTick // the row of the history about it; zero without one
	Text     string
}
