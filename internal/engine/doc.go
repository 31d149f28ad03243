// Package engine turns rows into running processors, on time.
//
// The table is the queue. What this package holds in memory is a cache of it, and may be lost at any moment. A task
// passes through these files:
//
//	arm.go          decides which rows this process arms, and moves timers that fire into the ready queues
//	tags.go         knows which tags may run here: registered or popped, and not paused
//	claimer.go      claims rows that have a slot, many in one guarded statement, shortly before they are due
//	dispatch.go     starts each claimed task at its exact due time
//	run.go          runs the processor, and turns what it returns into a result
//	lateness.go     measures how late a start is, and finds out why
//	settle.go       writes results, many in one statement, fenced by the version
//	outcomes.go     does what follows a stored result
//	attempt.go      has the states of a claimed row
//
// These find rows that were not saved here, or that were missed:
//
//	lookahead.go    rows that other processes have saved, every second
//	commits.go      rows that were saved in a caller's transaction
//	notify.go       tells other nodes of rows that they cannot have seen; wakeups.go reads what others tell of
//	census.go       which nodes live
//	overduepoll.go  rows that have just become overdue; quickpoll.go reads often where wake-ups fail
//	filewatch.go    changes of the file of an embedded database
//	poplook.go      rows of a tag for which a pop begins to wait
//	passes.go       what the scanner finds every few seconds; also rescue, purge and orphaned claims
//	bounded.go      the store as passes see it, with a timeout for each call
//
// These keep what runs:
//
//	renew.go        renews leases, and ends attempts that have lost theirs
//	handover.go     gives a task from its processor to the holder of its lease token
//	pop.go          hands tasks to callers of Pop
//	holders.go      knows the tasks that callers hold by lease tokens, and ends their leases
//	ends.go         ends tasks by their lease tokens; endtry.go tries many in one statement
//	save.go         saves tasks, or has the tasks changed that carry their keys
//	conflict.go     changes the unfinished task that carries the key of a save
//	control.go      changes single tasks for operators and programs
//	change.go       tries such a change until it is stored or refused
//	bulk.go         changes all tasks that match a filter
//	watch.go        tells subscribers what was stored; waits.go answers those who wait for the end of a task
//	backlog.go      measures what is due and waits, and the lag of the purge, for the metrics
//	clocksync.go    keeps the bounds of the database's clock narrow
//	heartbeat.go    keeps the node's number, and says whether this process is ready
//
// engine.go wires the parts together by what config.go says, and stop.go ends them. hooks.go calls the user's
// functions. manual.go is an engine whose tasks run one by one, for tests. table.go has the steps that all writers
// share: what is locked, what is refused, what a lost statement has done. claimfailed.go uses them for claims. Package
// save stores new tasks. Package runqueue knows which rows this process may run, and which of them next.
//
// # Why a due row is not claimed
//
// The run queue does not have it, or does not pick it:
//
//   - arm.go: it is another node's. The overdue poll or the scan of this node takes it later.
//   - queue.go of package runqueue: this process owns the row already.
//   - ready.go there: its tag is closed: without a processor or a pop, or paused.
//   - claims.go there: there is no place, for the process or for the tag.
//   - probation.go there: others on probation run.
//
// The claimer holds it back, or the statement does not win it:
//
//   - claimer.go: after claims that the database did not take, all claims pause (notTaken).
//   - claimer.go: another transaction holds it (checkLocks).
//   - Claim of a store: the WHERE does not match it, or its version is used up.
//   - claimfailed.go: the statement failed.
//
// A claim that has no answer gives its slots back (longClaim, followLost), and may still win its rows. So what must
// hold for as long as a row may run here ends with Release, not with the Yield of its slot.
//
// # Locks
//
// A goroutine that holds a lock takes only locks that stand in a later line:
//
//	Engine.mu
//	tags.refreshing
//	pops.mu, dispatcher.mu, commits.mu, wakeups.mu: one of them at a time
//	holders.mu
//	the lock of runqueue.Queue, which calls back into tags and attempts
//	tags.mu, and below it the registry's
//	attempt.mu, attempts.mu and all others: nothing is taken while one of them is held
package engine
