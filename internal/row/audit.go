package row

import "github.com/delaytask/delaytask/report"

// AuditEntry is a row of delay_task_audit: what a person is about to do, and what became of it.
type AuditEntry struct {
	ID     int64 // grows with the time
	Begin  Time
	Who    string
	Via    string
	Action string
	Target string
	Tag    string // "": all tags, several, or none
	Detail string
	Bulk   string // what a bulk change is, as package bulk writes it; "": its process does not tell
	Seen   Time   // when the process of a bulk change was last seen at it; 0: it does not tell
	Stop   Time   // when a caller has asked to stop a bulk change; 0: none has
	AuditEnd
}

// AuditEnd is what became of an act. While the act is under way it is zero, except for the tasks of a bulk change. It
// stays so when its process dies.
type AuditEnd struct {
	Outcome report.AuditOutcome
	Tasks   int64 // that were changed, so far
	Error   string
	End     Time
}

// The most bytes that an entry holds.
const (
	AuditWhoBytes    = 255 // of Target as well
	AuditTagBytes    = 128
	AuditDetailBytes = 1000
	AuditErrorBytes  = 500
)
