package delaytask

import (
	"net/netip"
	"time"
)

// TaskRow is a task as it is stored; a processor gets a [Task]. Times are UTC on the database's clock. A time that is
// not set is zero.
type TaskRow struct {
	ID      int64
	Tag     string
	Key     string // "": none
	Body    []byte // nil where it was not asked for
	Headers map[string]string

	Status  Status
	Version int64 // grows by 1 at every transition

	Attempt     int // number of the current or last attempt
	MaxAttempts int // 0: no limit
	CrashCount  int // leases that ended without an answer
	TTR         time.Duration
	Priority    int
	MaxLate     time.Duration // 0: no limit
	LatePolicy  LatePolicy

	Delay    time.Duration // as asked for
	Expected time.Time     // its first due time, which only Reschedule moves
	Started  time.Time     // when its first attempt started
	Late     LateReason    // why that was over 100 ms after Expected; "": it was not, or nothing tells why
	Finished time.Time     // when it reached a final status
	Due      time.Time     // pending: the next attempt; executing: the lease's end; final: the finish
	Created  time.Time
	Updated  time.Time

	Schedule *ScheduledRun // nil for a task that is not the run of a schedule

	Executor   string          // "host:pid:process token:claim number" of the last claim
	IPAddress  netip.Addr      // of the last executor; not valid where it is not known
	ErrorStack string          // the last error, with the stack of a panic
	Errors     []FailedAttempt // the last ten unsuccessful attempts, oldest first

	// Broken says why the row cannot be read; then only ID, Version and Status are set. The row was written by hand:
	// repair it, or let a node that serves its tag fail it.
	Broken string
}

// Lateness is how much later than expected the task started, 0 while it has not.
func (t *TaskRow) Lateness() time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	return t.Started.Sub(t.Expected)
}

// LastError is why the last unsuccessful attempt failed, "" when there was none.
func (t *TaskRow) LastError() string {
	if len(t.Errors) > 0 {
		return t.Errors[len(t.Errors)-1].Error
	}
	return t.ErrorStack
}

// FailedAttempt is an attempt that did not succeed.
type FailedAttempt struct {
	N        int
	Due      time.Time // zero where it is not known: its executor is gone
	Started  time.Time // likewise
	Finished time.Time
	Executor string
	Error    string // at most 1 KiB
}

// Filter selects tasks. Fields that are left out do not filter.
//
// A list goes through an index in its [Order]. Status, Tag, DueFrom and DueBefore choose a part of the index. Key,
// LateBy, Error and Group are compared row by row on the way, so a page also ends after 10,000 rows or 0.1 s ([Page]).
type Filter struct {
	Tag    string
	Status Status
	// Key finds an unfinished task at once, and finished ones among the newest of the tag. It needs a Tag.
	Key       string
	App       string        // the application that Key belongs to; it needs a Key
	DueFrom   time.Time     // due then or later; for finished tasks that is when they finished
	DueBefore time.Time     // due earlier; likewise
	LateBy    time.Duration // the first attempt began more than so late, or has not begun and is that late now
	Error     string        // the last error contains it, byte by byte
	Group     string        // FailureGroup.ID: only failed tasks of the group
	Order     Order
	After     string // Page.Next of the page before, with the same Order, Tag, Status, Key and App
	Limit     int    // at most 1000, with Bodies 100: more means these; default 100
	Bodies    bool   // read the bodies too
}

// Order says how a list of tasks is sorted.
type Order string

// The orders. By due time a list needs a Status or a Tag. A list with a Key has one order: the unfinished task, then
// the newest. Without an Order, unfinished tasks come by due time, finished tasks and the tasks of a tag with the
// latest first, and all tasks with the newest first.
const (
	OrderDue    Order = "due"  // by due time, the earliest first; finished tasks by when they finished
	OrderLatest Order = "-due" // the latest first
	OrderNewest Order = "-id"  // the newest saves first; a Status or a Tag is compared row by row
)

// Page is a part of a list: the tasks up to the filter's limit, and up to 16 MiB of bodies and errors, but at least
// one.
type Page struct {
	Tasks []TaskRow // in the order of the filter
	Next  string    // Filter.After of the next page; "" when this is the last
	// Stopped says that the page has ended after it had looked at 10,000 rows, or for 0.1 s. It may have few tasks, or
	// none, and there may be more.
	Stopped bool
}

// Status is where a task stands.
type Status string

// The life of a task: pending, executing, and one of the final three.
const (
	Pending   Status = "pending"   // it waits for its due time, for a slot or for its next attempt
	Executing Status = "executing" // a process or a worker holds its lease
	Completed Status = "completed" // a processor has returned nil, or a worker has finished it
	Failed    Status = "failed"    // its attempts are used up, or it failed for good
	Cancelled Status = "cancelled" // by a call, or because it was too late
)

// Final reports whether only an operator's retry leaves the status.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }
