package delaytask

// LateReason says, for programs, why a task started over 100 ms late. It is about the first start alone.
type LateReason string

// The reasons for a late start. The one that explains most of the lateness is stored with the result of the attempt.
const (
	LateSlot     LateReason = "slot"       // it waited for a free slot of its process, or for a caller of Pop
	LateTagLimit LateReason = "tag_limit"  // it waited for a slot of its tag while the process had others
	LateRetry    LateReason = "retry"      // an earlier attempt ended before it had started the task
	LatePaused   LateReason = "paused"     // its tag was paused
	LateUnserved LateReason = "unserved"   // no process served its tag
	LateDatabase LateReason = "database"   // the database did not answer, refused claims, or was slow
	LateClock    LateReason = "clock"      // starts were held until the database's clock was known again
	LateLocked   LateReason = "locked"     // another transaction had locked its row
	LateFound    LateReason = "found_late" // no process had a timer for it; a read of the table found it overdue
	LateReceiver LateReason = "receiver"   // its receiver took long to accept it
	LateProcess  LateReason = "process"    // the process itself was slow: it was suspended, or had no CPU time
)

// LateReasons returns all reasons. The place of a reason, from 1, is its number in the column late_reason; a new one
// comes last.
func LateReasons() []LateReason {
	return []LateReason{
		LateSlot, LateTagLimit, LateRetry, LatePaused, LateUnserved, LateDatabase, LateClock, LateLocked, LateFound,
		LateReceiver, LateProcess,
	}
}
