// Package engine turns rows into running processors, on time.
//
// The table is the queue. What this package holds in memory is a cache of it, and may be lost at any moment. The engine
// stands in floors. Each package knows only those above it in this list:
//
//	table    the store with the steps of all writers, and the bounds of the database's clock
//	events   what others are told: hooks, subscriptions, waits
//	arm      which rows and tags are this node's: shares, census, timers, commits, notices
//	control  save, cancel, reschedule, change, retry; in bulk. It knows table and events alone
//	run      claim, dispatch, run, settle, renew
//	lease    pops, holders, ends by token, hand-over
//	find     look-ahead, polls, scan, wake-ups, rescue, purge
//	engine   start, stop, heartbeat, wiring
//
// Package save stores new tasks. Package runqueue knows which rows this process may run, and which of them next.
//
// A timer becomes a result on this way:
//
//	arm/arm.go        moves timers that fire into the ready queues
//	runqueue          picks what has a place
//	run/claimer.go    claims rows that have a slot, many in one guarded statement, shortly before they are due
//	run/dispatch.go   starts each claimed task at its exact due time
//	run/run.go        runs the processor, and turns what it returns into a result
//	run/settle.go     writes results, many in one statement, fenced by the version
//	events/events.go  tells what was stored
//
// This package itself:
//
//	engine.go     wires the parts together by what config.go says, and stop.go ends them
//	heartbeat.go  keeps the node's number, and says whether this process is ready
//	readclock.go  keeps the bounds of the database's clock narrow
//	backlog.go    measures what is due and waits, and the lag of the purge, for the metrics
//	pop.go        announces the tags that are popped here
//	schedules.go  starts what plans the runs of schedules; marks.go marks what this node has done
//	manual.go     is an engine whose tasks run one by one, for tests
//
// # Why a due row is not claimed
//
// The run queue does not have it, or does not pick it:
//
//   - arm/arm.go: it is another node's. The overdue poll or the scan of this node takes it later.
//   - queue.go of package runqueue: this process owns the row already.
//   - ready.go there: its tag is closed: without a processor or a pop, or paused.
//   - claims.go there: there is no place, for the process or for the tag.
//   - probation.go there: others on probation run.
//
// The claimer holds it back, or the statement does not win it:
//
//   - run/claimer.go: after claims that the database did not take, all claims pause (notTaken).
//   - run/claimer.go: another transaction holds it (checkLocks).
//   - Claim of a store: the WHERE does not match it, or its version is used up.
//   - run/claimfailed.go: the statement failed.
//
// A claim that has no answer gives its slots back (longClaim, followLost), and may still win its rows. So what must
// hold for as long as a row may run here ends with Release, not with the Yield of its slot.
//
// # Locks
//
// A goroutine that holds a lock takes only locks that stand in a later line:
//
//	Engine.mu
//	refreshing of the tags of arm
//	mu of pops, dispatcher, commits, wakeups: one of them at a time
//	mu of the holders of lease
//	the lock of runqueue.Queue, which calls back into tags and attempts
//	mu of the tags of arm, and below it the registry's
//	mu of attempts and all others: nothing is taken while one of them is held
package engine
