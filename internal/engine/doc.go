// Package engine turns rows into running processors, on time.
//
// The table is the queue; everything this package holds in memory is a cache of it and may be lost at any moment. A
// task passes through these files:
//
//	arm.go        decides whether this process arms a row, and puts it into the timer heap
//	lookahead.go  finds the rows that other processes saved, every second
//	poplook.go    finds what is due of a tag when a pop begins to wait for it
//	peek.go       finds rows that have just become overdue and that nobody took
//	timers.go     sleeps until the head of the heap is due, minus the lead
//	claimer.go    claims what has a slot, in one guarded statement
//	refused.go    finds the row that a claim is refused for, and what a claim did whose answer was lost
//	dispatch.go   starts each claimed task at its exact due time
//	run.go        runs the processor
//	renew.go      keeps the leases of what runs, and ends what has lost its lease
//	settle.go     writes the results, coalesced and fenced
//	handover.go   gives a task to the holder of its token
//	endtry.go     ends tasks by their tokens, many in one statement
//	passes.go     what the scanner does every few seconds: scan, rescue, purge
//	bounded.go    the store as these see it: each call has an end
//
// Package save stores new tasks before that. All files above go through package runqueue, which knows what this process
// may run and in which order. A claimed row is an attempt; attempt.go has its states.
package engine
