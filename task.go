package delaytask

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Status is where a task stands.
type Status string

// The life of a task: pending, executing, and one of the final three.
const (
	Pending   Status = "pending"
	Executing Status = "executing"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Final reports whether only an operator's retry leaves the status.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// stored is the status as the table has it, and whether there is such a status.
func (s Status) stored() (row.Status, bool) {
	for n := row.Pending; n <= row.Cancelled; n++ {
		if n.String() == string(s) {
			return n, true
		}
	}
	return 0, false
}

// Task is a task as it is stored. Times are UTC on the database's clock; one that is not set is the zero time.
type Task struct {
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
	Expected time.Time     // when it was promised to start; changes only by Reschedule
	Started  time.Time     // when the processor of the first attempt really started
	Finished time.Time     // when it reached a final status
	Due      time.Time     // the next attempt while pending, the lease's end while executing, the finish time when final
	Created  time.Time
	Updated  time.Time

	Executor   string     // "host:pid:process token:claim number" of the last claim
	IPAddress  netip.Addr // of the last executor; not valid where it is not known
	ErrorStack string     // the last error, with the stack of a panic
	Errors     []Attempt  // the last ten unsuccessful attempts, oldest first

	// Broken says why the row cannot be read; then only ID, Version and Status are set. Somebody wrote it by hand: repair it, or
	// let a node that serves its tag fail it.
	Broken string
}

// Lateness is how much later than expected the first attempt started, 0 while it has not.
func (t *Task) Lateness() time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	return t.Started.Sub(t.Expected)
}

// Attempt is an attempt that did not succeed.
type Attempt struct {
	N        int
	Due      time.Time // zero where it is not known: its executor is gone
	Started  time.Time // likewise
	Finished time.Time
	Executor string
	Error    string // at most 1 KiB
}

func taskOf(r *row.Row) Task {
	return Task{
		ID: r.ID, Tag: r.Tag, Key: r.Key, Body: r.Body, Headers: row.DecodeHeaders(r.Headers),
		Status: Status(r.Status.String()), Version: r.Version,
		Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, CrashCount: r.CrashCount, TTR: r.TTR, Priority: r.Priority,
		MaxLate: r.MaxLate, LatePolicy: LatePolicy(r.LatePolicy),
		Delay: r.Delay, Expected: r.Expected.Std(), Started: r.Execution.Std(), Finished: r.Finish.Std(), Due: r.Due.Std(),
		Created: r.Created.Std(), Updated: r.Updated.Std(),
		Executor: r.Executor, IPAddress: address(r.IPAddress), ErrorStack: r.ErrorStack, Errors: attempts(r.Errors),
	}
}

func brokenTask(b *row.Broken) Task {
	return Task{ID: b.ID, Version: b.Version, Status: Status(b.Status.String()), Broken: b.Reason}
}

func address(ip uint32) netip.Addr {
	if ip == 0 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// attempts skips entries that are not ours, because the column is open to anybody's SQL.
func attempts(column []byte) []Attempt {
	var entries []json.RawMessage
	if json.Unmarshal(column, &entries) != nil {
		return nil
	}
	var all []Attempt
	for _, entry := range entries {
		var a row.Attempt
		if json.Unmarshal(entry, &a) == nil {
			all = append(all, Attempt(a))
		}
	}
	return all
}
