package row

// LateReason says why a task started late for the first time. The numbers are stored.
type LateReason uint8

const (
	LateUnknown  LateReason = 0  // it was not late, or nothing tells why
	LateSlot     LateReason = 1  // it waited for a free slot of its process, or for a caller of Pop
	LateTagLimit LateReason = 2  // it waited for a slot of its tag while the process had others
	LateRetry    LateReason = 3  // an earlier attempt ended before it had started the task
	LatePaused   LateReason = 4  // its tag was paused
	LateUnserved LateReason = 5  // no process served its tag
	LateDatabase LateReason = 6  // the database did not answer, refused claims, or was slow
	LateClock    LateReason = 7  // starts were held until the database's clock was known again
	LateLocked   LateReason = 8  // another transaction had locked its row
	LateFound    LateReason = 9  // no process had a timer for it; a read of the table found it overdue
	LateReceiver LateReason = 10 // its receiver took long to accept it
	LateProcess  LateReason = 11 // the process itself was slow: it was suspended, or had no CPU time
)

var lateReasons = [...]string{
	"", "slot", "tag_limit", "retry", "paused", "unserved", "database", "clock", "locked", "found_late",
	"receiver", "process",
}

// String returns the name of the reason, or "" for an unknown one.
func (r LateReason) String() string {
	if int(r) < len(lateReasons) {
		return lateReasons[r]
	}
	return ""
}
