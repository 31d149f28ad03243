package report

import "time"

// AuditFilter says which entries Audit returns. Fields that are left out do not filter.
type AuditFilter struct {
	Who    string // the whole name of an access token, or user@host of the command
	Action string // such as task.cancel
	Tag    string // the whole tag
	// Before leaves out the entry of this id and newer ones: AuditPage.Next of the page before. Default: none.
	Before int64
	// Limit is at most 1,000: more means that. Default: 100.
	Limit int
}

// AuditPage is a part of the audit log, the newest entries first.
type AuditPage struct {
	Entries []AuditEntry
	Next    int64 // AuditFilter.Before of the next page; 0 when this is the last
	// Stopped says that the page has ended after it had looked at 10,000 entries. It may have few entries, or none, and
	// there may be more.
	Stopped bool
}

// AuditEntry says what a caller has changed, or has tried to. It is stored before the change, and its outcome after it.
type AuditEntry struct {
	ID     int64     // grows with the time
	Time   time.Time // when the change was about to begin, by the database's clock
	Who    string    // name of the access token, or user@host of the command; "": the service asked for no token
	Via    string    // api, command or dashboard
	Action string    // such as task.cancel, bulk.retry or tag.pause; later versions may add some
	Target string    // id of the task, or name of the schedule, receiver or token
	Tag    string    // "": all tags, several, or none
	Detail string    // the filter of a bulk change, with its moment; what else was asked for

	Outcome AuditOutcome
	Tasks   int64     // that were changed, also where not all were; of a bulk change under way, so far
	Error   string    // why it was not done
	Ended   time.Time // zero while it is under way
}

// AuditOutcome says what became of a change.
type AuditOutcome string

// The outcomes.
const (
	AuditUnderWay AuditOutcome = "" // or its process died
	AuditDone     AuditOutcome = "done"
	// AuditUnchanged is of a pause or a resume of a tag that was so before.
	AuditUnchanged AuditOutcome = "unchanged"
	AuditRefused   AuditOutcome = "refused" // nothing was changed, and trying again does not help
	AuditFailed    AuditOutcome = "failed"  // the database did not do it, or not all of it
	AuditUnknown   AuditOutcome = "unknown" // it may have been done
	AuditStopped   AuditOutcome = "stopped" // before its end, by a person or with its process
	// AuditLost is of a bulk change whose process was not seen at it for 30 s: it has died, or does not reach the
	// database. A part may have been done.
	AuditLost AuditOutcome = "lost"
)
