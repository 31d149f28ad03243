package sentence

// Code says which sentence it is.
type Code string

// The codes of why a task does not run, or of what has become of it.
const (
	TaskBroken      Code = "task.broken"
	TaskCompleted   Code = "task.completed"
	TaskCancelled   Code = "task.cancelled"
	TaskQuarantined Code = "task.quarantined"
	TaskFailed      Code = "task.failed"
	TaskLeaseOver   Code = "task.lease_over"
	TaskLeaseAhead  Code = "task.lease_ahead"
	TaskLeased      Code = "task.leased"
	TaskNotDue      Code = "task.not_due"
	TaskRetry       Code = "task.retry"
	TaskPaused      Code = "task.paused"
	TaskUnserved    Code = "task.unserved"
	TaskLocked      Code = "task.locked"
	TaskTagLocked   Code = "task.tag_locked"
	TaskLockUnknown Code = "task.lock_unknown"
	TaskWaiting     Code = "task.waiting"
	TaskLate        Code = "task.late"
	Late            Code = "late." // before a LateReason
)

// The codes of how a schedule stands.
const (
	ScheduleUnreadable Code = "schedule.unreadable"
	SchedulePaused     Code = "schedule.paused"
	SchedulePausedBy   Code = "schedule.paused_by"
	ScheduleEnded      Code = "schedule.ended"
	ScheduleRetired    Code = "schedule.retired"
	ScheduleLast       Code = "schedule.last"
	ScheduleNext       Code = "schedule.next"
	ScheduleJittered   Code = "schedule.jittered"
	ScheduleBehind     Code = "schedule.behind"
	ScheduleFailures   Code = "schedule.failures"
	ScheduleRun        Code = "schedule.run"
	NoReason           Code = "schedule.no_reason"
	State              Code = "schedule.state." // before a ScheduleState
)

// The codes of what became of a tick.
const (
	TickOpen        Code = "tick.open"
	TickCompleted   Code = "tick.completed"
	TickFailed      Code = "tick.failed"
	TickCancelled   Code = "tick.cancelled"
	TickNotRun      Code = "tick.not_run"
	TickSkipped     Code = "tick.skipped"
	TicksNotRun     Code = "tick.not_run_among"
	TickUnknown     Code = "tick.unknown"
	TickNone        Code = "tick.none"
	TickNoneBefore  Code = "tick.none_but_before"
	TickNoneAfter   Code = "tick.none_but_after"
	TickNoneBetween Code = "tick.none_but_between"
	TickTooEarly    Code = "tick.too_early"
	TickToCome      Code = "tick.to_come"
	TickStopped     Code = "tick.stopped"
	TickRests       Code = "tick.rests"
	TickAfterLast   Code = "tick.after_last"
	TickBeyond      Code = "tick.beyond_runs"
	TickForgotten   Code = "tick.forgotten"
)

// The codes of findings.
const (
	TwoDatabases    Code = "finding.two_databases"
	Replica         Code = "finding.replica"
	ServerReadOnly  Code = "finding.server_read_only"
	ClockHeld       Code = "finding.clock_held"
	ClockWide       Code = "finding.clock_wide"
	Unserved        Code = "finding.unserved"
	PausedOverdue   Code = "finding.paused_overdue"
	Overdue         Code = "finding.overdue"
	ServedByPops    Code = "finding.served_by_pops"
	ServedBy        Code = "finding.served_by"
	ServedExecuting Code = "finding.served_executing"
	LeaseOver       Code = "finding.lease_over"
	NodeSilent      Code = "finding.node_silent"
	NodeSilentHolds Code = "finding.node_silent_holds"
	LeasedToIt      Code = "finding.leased_to_it"
	Failing         Code = "finding.failing"
	Retrying        Code = "finding.retrying"
	MostOften       Code = "finding.most_often"
	PurgeBehind     Code = "finding.purge_behind"

	SchedulesBehind       Code = "finding.schedule_behind"
	SchedulesPaused       Code = "finding.schedule_paused"
	SchedulesPausedOf     Code = "finding.schedule_paused_because"
	SchedulesUnsuccessful Code = "finding.schedule_unsuccessful"
	Status                Code = "finding.status." // before a Status
	FewOfMore             Code = "finding.few_of_more"
	RowsLocked            Code = "finding.rows_locked"
	RangeLocked           Code = "finding.range_locked"
	HoldsUp               Code = "finding.holds_up"
	RowsMayBeLocked       Code = "finding.rows_may_be_locked"
	Hanging               Code = "finding.hanging"
)

// The codes of what to do about findings.
const (
	DoCommand      Code = "do.command" // its parameter
	DoTwoDatabases Code = "do.two_databases"
	DoReplica      Code = "do.replica"
	DoClockHeld    Code = "do.clock_held"
	DoClockWide    Code = "do.clock_wide"
	DoUnserved     Code = "do.unserved"
	DoTagInvalid   Code = "do.tag_invalid"
	DoNodeSilent   Code = "do.node_silent"
	DoPurgeBehind  Code = "do.purge_behind"
	DoRowsLocked   Code = "do.rows_locked"
	DoRangeLocked  Code = "do.range_locked"
	DoHanging      Code = "do.hanging"
)

// English has the form of every code.
var English = map[Code]string{
	TaskBroken:    "Its row cannot be read: %s.",
	TaskCompleted: "It completed at %s, in attempt %s.",
	TaskCancelled: "It was cancelled at %s.",
	TaskQuarantined: "It was quarantined at %s: its executor died or went silent %s times while it ran. " +
		"Retry it when the cause is repaired.",
	TaskFailed: "It failed for good at %s, in attempt %s: %s",
	TaskLeaseOver: "The lease of %s ended at %s without an answer; a rescue takes it back within seconds, " +
		"if a node is alive.",
	TaskLeaseAhead: "The lease of %s lasts until %s, longer than the TTR: its process is gone, and the database's " +
		"clock was set back. delaytask doctor prints the statement that ends such leases.",
	TaskLeased:      "Attempt %s is leased by %s until %s.",
	TaskNotDue:      "It is due at %s.",
	TaskRetry:       "Attempt %s failed (%s); the next one is due at %s.",
	TaskPaused:      "The tag %s is paused.",
	TaskUnserved:    "No live node serves the tag %s.",
	TaskLocked:      "Its row is locked by another transaction.",
	TaskTagLocked:   "Rows of tag %s are locked by another transaction.",
	TaskLockUnknown: "The database refuses to look for a lock on its row, as one that is read-only does.",
	TaskWaiting:     "It has been due since %s and waits for a free slot.",
	TaskLate:        "It started %s late: %s.",
	Late + "slot": "it waited for a free slot of its process, or for a caller of Pop. " +
		"Raise the concurrency or run more processes",
	Late + "tag_limit": "it waited for a slot of its tag. Raise the concurrency of the tag",
	Late + "retry":     "an earlier attempt ended before it had started the task",
	Late + "paused":    "its tag was paused",
	Late + "unserved":  "no process served its tag",
	Late + "database":  "the database did not answer, refused claims, or was slow. See delaytask doctor",
	Late + "clock":     "starts were held until the database's clock was known again, as after a failover",
	Late + "locked":    "another transaction had locked its row",
	Late + "found_late": "no process had a timer for it, so a read of the table found it overdue. It was saved by a " +
		"process without processors, its transaction was committed late, or its node died or was overloaded",
	Late + "receiver": "its receiver took long to accept it",
	Late + "process":  "the process that ran it was suspended or had no CPU time",

	ScheduleUnreadable: "It cannot be explained here: %s. Bring this machine's zone data or this program up to date.",
	SchedulePaused: "It is paused since %s: %s. Ticks of the pause do not run. After resume it goes on with the " +
		"next one.",
	SchedulePausedBy: "It is paused since %s by %s: %s. Ticks of the pause do not run. After resume it goes on with " +
		"the next one.",
	ScheduleEnded: "It has ended: %s.",
	ScheduleRetired: "It is retired since %s: no live program of %s declares it. It comes back with its state " +
		"when one does within 30 days.",
	ScheduleLast:     "No tick is to come, and it ends with its run.",
	ScheduleNext:     "Its next tick is %s.",
	ScheduleJittered: "Its next tick is %s, which its jitter puts off until %s.",
	ScheduleBehind: "%[1]s ticks are due and not decided: no started process can decide about it, or the database " +
		"refuses the decision. The log of the processes says why.",
	ScheduleFailures: "Its last %s runs have failed.",
	ScheduleRun:      "Its run is task %s.",
	NoReason:         "no reason was given",
	State + "active": "active", State + "paused": "paused", State + "ended": "ended", State + "retired": "retired",
	State + "unknown": "unknown",

	TickOpen:      "Its run has not ended.",
	TickCompleted: "It ran as task %s, from %s to %s.",
	TickFailed:    "Its run, task %s, failed at %s: %s.",
	TickCancelled: "Its run, task %s, cancelled at %s: %s.",
	TickNotRun:    "It did not run: %s.",
	TickSkipped:   "It does not run: %s.",
	TicksNotRun:   "It did not run, as one of %s from %s to %s: %s.",
	TickUnknown:   "It was planted as task %s, which was deleted before its end was seen.",
	TickNone: "The definition of today names no tick at this moment. " +
		"delaytask schedule preview shows what a clock change moves.",
	TickNoneBefore: "The definition of today names no tick at this moment, but one at %s. " +
		"delaytask schedule preview shows what a clock change moves.",
	TickNoneAfter: "The definition of today names no tick at this moment and one at %s. " +
		"delaytask schedule preview shows what a clock change moves.",
	TickNoneBetween: "The definition of today names no tick at this moment, but one at %s and one at %s. " +
		"delaytask schedule preview shows what a clock change moves.",
	TickTooEarly:  "The schedule was created at %s, after this tick.",
	TickToCome:    "It is to come, or waits: nothing is decided about it.",
	TickStopped:   "It did not run: the schedule is %s: %s.",
	TickRests:     "It does not run as long as the schedule is %s: %s.",
	TickAfterLast: "It does not run: the last tick of the schedule was %s.",
	TickBeyond:    "It runs only if ticks before it do not: the schedule ends after %s runs.",
	TickForgotten: "The history does not hold it: the schedule was paused or had another definition then, or the row " +
		"was deleted, because the history keeps %s rows.",

	Replica: "the server applies the changes of %s: what it shows may be behind, and a task that runs from it" +
		" runs there too",
	ServerReadOnly: "the server is read-only: no task is saved or started on it, and what it shows may be behind",
	TwoDatabases:   "two databases answer at one address (%s): tasks that are saved in one do not run from the other",
	ClockHeld:      "this process starts no task: it does not know the database's clock, as after a failover",
	ClockWide:      "this process knows the database's clock to within %s only, and tasks may be as late",
	Unserved: "1 task is overdue, and no live process serves the tag|" +
		"%s tasks are overdue, and no live process serves the tag",
	SchedulesBehind:       "ticks are due and no process decides about them, of the schedules %s",
	SchedulesPaused:       "schedules have paused by themselves: %s",
	SchedulesPausedOf:     "schedules have paused by themselves: %s; %s",
	SchedulesUnsuccessful: "no run has completed for two ticks or more, of the schedules %s",
	PausedOverdue:         "the tag is paused, and 1 task is overdue|the tag is paused, and %s tasks are overdue",
	Overdue: "1 task is overdue although %[2]s: they have too few slots, the processor is slow, or rows are locked|" +
		"%[1]s tasks are overdue although %[2]s: they have too few slots, the processor is slow, or rows are locked",
	ServedByPops:    "callers of Pop take them",
	ServedBy:        "1 process serves the tag|%s processes serve the tag",
	ServedExecuting: "%s, with %s executing",
	LeaseOver: "1 task is executing with a lease that is over: no process rescues them, or another transaction locks " +
		"the rows|%s tasks are executing with leases that are over: no process rescues them, or another transaction " +
		"locks the rows",
	NodeSilent:           "process %[1]s (%[2]s) is silent",
	NodeSilentHolds:      "process %[1]s (%[2]s) is silent, and %[3]s, the last one until %[4]s",
	LeasedToIt:           "1 task is leased to it|%s tasks are leased to it",
	Failing:              "1 task has failed within 10 min|%s tasks have failed within 10 min",
	Retrying:             "%s attempts have failed within 10 min and are tried again, and %s tasks were completed",
	MostOften:            "%s, most often: %s",
	PurgeBehind:          "%s tasks are past their retention of %s: of %s",
	Status + "completed": "completed", Status + "failed": "failed", Status + "cancelled": "cancelled",
	FewOfMore:       "%s and %s more",
	RowsLocked:      "connection %s has a transaction open that locks %s rows of tasks",
	RangeLocked:     "rows of %s are locked by another transaction, which holds up some of their tasks",
	HoldsUp:         "%s, and holds up tasks of %s",
	RowsMayBeLocked: "connection %s has a transaction open that locks %s rows, which may be tasks",
	Hanging:         "the processor of task %s, in attempt %s, ignores that its context has ended",

	DoCommand:      "%s",
	DoReplica:      "connect the processes that save and run tasks to the primary",
	DoTwoDatabases: "let the address lead to one server or cluster, and move the tasks that were saved in the other",
	DoClockHeld:    "wait some seconds; then look whether the database answers: delaytask doctor",
	DoClockWide:    "look for what slows the answers of the database: delaytask doctor",
	DoUnserved:     "start the process that serves the tag, whose letters' case counts: delaytask nodes",
	DoTagInvalid:   "mend the tag of these rows, which is not valid: delaytask list",
	DoNodeSilent:   "look whether it runs and reaches the database: delaytask nodes",
	DoPurgeBehind:  "start a process where none is alive; each deletes by its own retention: delaytask nodes",
	DoRowsLocked:   "find out what it waits for, or end it on the server: KILL %s",
	DoRangeLocked:  "find the transaction on the server, and end it: SHOW ENGINE INNODB STATUS",
	DoHanging:      "mend the processor where the stack shows it, or start this process again",
}
