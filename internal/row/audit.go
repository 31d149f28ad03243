package row

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
	AuditEnd
}

// AuditEnd is what became of an act. It is zero while the act is under way, and stays so when its process dies.
type AuditEnd struct {
	Outcome AuditOutcome
	Tasks   int64 // that were changed
	Error   string
	End     Time
}

// AuditOutcome says how an act ended. The outcomes are stored.
type AuditOutcome string

// The outcomes of acts that have ended.
const (
	AuditDone    AuditOutcome = "done"
	AuditRefused AuditOutcome = "refused" // nothing was changed, and trying again cannot help
	AuditFailed  AuditOutcome = "failed"  // the database did not do it, or not all of it
	AuditUnknown AuditOutcome = "unknown" // it may have been done
)

// The most bytes that an entry holds.
const (
	AuditWhoBytes    = 255 // of Target as well
	AuditTagBytes    = 128
	AuditDetailBytes = 1000
	AuditErrorBytes  = 500
)
