// Package journal is what a simulated or a real run under faults leaves behind: one event for everything that a process
// did, was told or saw, in the order of time. Package judge decides from it alone whether the invariants held, so it
// can decide again at any time, on any machine.
package journal

import (
	"time"
)

// Event is one line of a journal. Fields that mean nothing for its kind are empty and left out of the file.
type Event struct {
	// At is the moment on the clock that all journals of a run share: the one of a simulation, or of the machine.
	At   time.Time `json:"at"`
	Node string    `json:"node"` // one life of a process that it tells of, or the injector of faults, or the database
	Kind Kind      `json:"kind"`

	Op  string `json:"op,omitempty"` // joins the call and the return of one operation; unique in a run
	ID  int64  `json:"id,omitempty"`
	Tag string `json:"tag,omitempty"`
	Key string `json:"key,omitempty"`
	// Body is the body itself where it is short, else a hash of it. All journals of a run do the same.
	Body string `json:"body,omitempty"`

	Version    int64  `json:"version,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	CrashCount int    `json:"crash_count,omitempty"`
	Status     string `json:"status,omitempty"` // as row.Status says it: "pending", "executing", …
	Executor   string `json:"executor,omitempty"`

	Due      time.Time `json:"due,omitzero"`      // by the database's clock
	Expected time.Time `json:"expected,omitzero"` // by the database's clock
	// Clock is the database's time at At, known without delaytask: "early" is judged by it. Zero: At is good enough,
	// because both clocks are one.
	Clock time.Time `json:"clock,omitzero"`

	Error  Class  `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"` // for people, but where a kind says otherwise
}

// Class says in a word how an operation or a processor ended. OK is the empty one.
type Class string

const (
	OK          Class = ""
	Unknown     Class = "unknown"      // the outcome is not known: it may have happened, and may yet happen
	Refused     Class = "refused"      // nothing happened, for a reason that no other class names
	LeaseLost   Class = "lease_lost"   // another executor owns the task, or it has ended
	Duplicate   Class = "duplicate"    // an unfinished task carries the key: ID
	NotFound    Class = "not_found"    // there is no such task
	WrongStatus Class = "wrong_status" // its status forbids what was asked for
	Failed      Class = "failed"       // an attempt ended with an error, or its time was up
	Permanent   Class = "permanent"    // with one that must not be tried again
	Panicked    Class = "panicked"     // with a panic
	Snoozed     Class = "snoozed"      // it asks to run again later
	HandedOver  Class = "handed_over"  // the owner of the token ends it
	Released    Class = "released"     // the owner of the token gives it back
	Interrupted Class = "interrupted"  // a graceful stop ended it
	Cancelled   Class = "cancelled"    // a cancel ended it
)

// Told is what a processor was told of the schedule of its task: the name, and the tick.
func Told(schedule string, tick time.Time) string {
	return schedule + " " + tick.UTC().Format(time.RFC3339Nano)
}

type Kind string

// Operations of callers. The call is written before anything is sent, the return when the caller has its answer: with
// Error, and with the ID where there is one. A call without a return is one whose process ended in between.
const (
	// CallSave has Tag, Key, Body, Expected and Clock, and the ID when it is saved again after an unknown outcome.
	CallSave         Kind = "call.save"
	ReturnSave       Kind = "return.save" // ID
	CallCancel       Kind = "call.cancel" // ID
	ReturnCancel     Kind = "return.cancel"
	CallReschedule   Kind = "call.reschedule" // ID
	ReturnReschedule Kind = "return.reschedule"
	CallRetry        Kind = "call.retry" // ID
	ReturnRetry      Kind = "return.retry"
	CallFinish       Kind = "call.finish" // ID, Version: a completion by token, or in the processor's own transaction
	ReturnFinish     Kind = "return.finish"
	CallPause        Kind = "call.pause" // Tag
	ReturnPause      Kind = "return.pause"
	CallResume       Kind = "call.resume" // Tag
	ReturnResume     Kind = "return.resume"
	CallSchedule     Kind = "call.schedule" // Key: the name of the schedule, Detail: what is asked for
	ReturnSchedule   Kind = "return.schedule"
)

// One execution of a task. RunStart is the processor's first statement, RunEnd its last; Op joins the two. A task that
// Pop has handed out is an execution too.
const (
	// RunStart has ID, Tag, Key, Body, Version, Attempt, Expected, Due, Clock. Detail is what the processor was told of
	// its schedule, as [Told] writes it.
	RunStart Kind = "run.start"
	RunEnd   Kind = "run.end"  // ID, Version, Error: how it ends, written before the library is told
	RunTold  Kind = "run.told" // ID, Version, Error: what the library says: the context has ended, the lease is lost
)

// What a process asked a store for about one task, as package history records it, and what it was told. Op and ID join
// the two.
const (
	StoreInsert Kind = "store.insert" // ID
	StoreClaim  Kind = "store.claim"  // ID, Version that it was seen at, Executor
	StoreChange Kind = "store.change" // ID, Version and Status that it was seen at, Executor; Detail: the status to be
	StoreRenew  Kind = "store.renew"  // ID, Version, Executor: a lease that goes to another executor
	StoreRead   Kind = "store.read"   // ID
	// StoreReturn is the answer: OK when it was done, WrongStatus when it was left out, Refused when nothing was done,
	// Unknown when it may have been or may yet be. A claim that was won tells the Version; a read what it saw: Version,
	// Status, Executor, or an empty Status where there was no such task.
	StoreReturn Kind = "store.return"
	// StoreWhole says that these calls are all that ever touches the table, and that a claim leaves out only what
	// others hold.
	StoreWhole Kind = "store.whole"
)

const (
	NodeStart   Kind = "node.start"   // it serves the tags in Detail, separated by spaces, from now on
	NodeCrash   Kind = "node.crash"   // from now on nothing that it does counts
	NodeStop    Kind = "node.stop"    // a graceful stop is asked for
	NodeStopped Kind = "node.stopped" // it has ended
	NodeFrozen  Kind = "node.frozen"  // SIGSTOP
	NodeThawed  Kind = "node.thawed"  // SIGCONT
)

// What the injector does, and what the database shows.
const (
	// FaultBegin has the kind of fault in Detail. Op joins begin and end; a fault of one moment has no end.
	FaultBegin Kind = "fault.begin"
	// FaultEnd has the process that was hurt in Key, if it was one, and an Error when there was nothing to hurt.
	FaultEnd Kind = "fault.end"
	Rules    Kind = "rules" // Detail: what the judge has to know, as package judge encodes it
	Phase    Kind = "phase" // Detail: PhaseFaults, PhaseDrain or PhaseDone
	// Write is one transition, the insert included: ID, Version, Tag, Key, Body, Status, Attempt, CrashCount, Executor,
	// Due, Expected, all as after it, and the Clock. An update may leave out Tag, Key, Body.
	Write Kind = "write"
	Lease Kind = "lease" // a lease that was moved, as far as the journal shows that: ID, Version, Due
	Row   Kind = "row"   // one row as it stands at the end: as Write, with Tag, Key, Body
	// Decide is a decision about a schedule that was applied: ID of the schedule, Detail: the decision as JSON, Clock.
	Decide Kind = "decide"
	Tick   Kind = "tick" // one row of the history of a schedule at the end: ID of the schedule, Detail: the row as JSON
)

// The phases of a run, in their order.
const (
	PhaseFaults = "faults" // faults happen
	PhaseDrain  = "drain"  // none happens any more, and everything that is due has to be done within its bound
	PhaseDone   = "done"   // what is unfinished now is late or lost
)
