package journal

// Kind says what an event tells.
type Kind string

// Operations of callers. The call is written before anything is sent, the return when the caller has its answer: with
// Error, and with the ID where there is one. A call without a return is one whose process ended in between.
const (
	CallSave         Kind = "call.save"   // Tag, Key, Body, Expected, Clock; ID when it is saved again after an unknown outcome
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
)

// One execution of a task. RunStart is the processor's first statement, RunEnd its last; Op joins the two. A task that
// Pop has handed out is an execution too.
const (
	RunStart Kind = "run.start" // ID, Tag, Key, Body, Version, Attempt, Expected, Due, Clock
	RunEnd   Kind = "run.end"   // ID, Version, Error: how it ends, written before the library is told
	RunTold  Kind = "run.told"  // ID, Version, Error: what the library says of it: its context has ended, its lease is lost
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
	// StoreWhole says that these calls are all that ever touches the table, and that a claim leaves out only what others
	// hold.
	StoreWhole Kind = "store.whole"
)

// The life of a node.
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
	FaultBegin Kind = "fault.begin" // Detail: the kind of fault; Op joins begin and end; a fault of one moment has no end
	FaultEnd   Kind = "fault.end"   // Key: the process that it was done to, where it was one; Error where there was nothing to do it to
	Rules      Kind = "rules"       // Detail: what the judge has to know, as package judge encodes it
	Phase      Kind = "phase"       // Detail: PhaseFaults, PhaseDrain or PhaseDone
	// Write is one transition, the insert included: ID, Version, Tag, Key, Body, Status, Attempt, CrashCount, Executor,
	// Due, Expected, all as after it, and the Clock. An update may leave out Tag, Key, Body.
	Write Kind = "write"
	Lease Kind = "lease" // a lease that was moved, as far as the journal shows that: ID, Version, Due
	Row   Kind = "row"   // one row as it stands at the end: as Write, with Tag, Key, Body
)

// The phases of a run, in their order.
const (
	PhaseFaults = "faults" // faults happen
	PhaseDrain  = "drain"  // none happens any more, and everything that is due has to be done within its bound
	PhaseDone   = "done"   // what is unfinished now is late or lost
)
