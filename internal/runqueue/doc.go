// Package runqueue knows which rows this process may run, and which one is next.
//
// The table is the queue, as it is for River. A claim is an UPDATE that names id and version, so two processes never
// run the same row. A process that polled the table for each free slot would start tasks late and keep MySQL busy. So
// it remembers what it has seen. All of that may be lost at any time, because a read finds it again.
//
// A row that was seen goes through these places, and is in at most one of them:
//
//	queue.go      it falls due soon, and its timer fires a little ahead of that
//	ready.go      it is due, or will be in milliseconds, and waits for a place: timely, of the backlog, or on probation
//	queue.go      it was picked, so this process owns it: it is being claimed, runs, or was handed out
//	slots.go      it is claimed, its time has come, and it waits for a slot, or runs in one
//
// What decides which row is next:
//
//	tagqueue.go   what waits of each tag; an idle tag costs nothing
//	claims.go     how many rows may be claimed: concurrency, fairness between tags, rows not due yet, prefetch
//	pops.go       which tags callers of Pop have looked for, and how many rows they wait for
//	probation.go  rows whose tasks have lost executors, and may be what ends processes
//
// A Queue is a passive table. It has no store, starts no goroutine and writes no log. Package engine does all of that,
// woken by the queue's four channels. What finds rows calls Arm and AddDue. The claimer calls Pick, and Release for
// each row that it has not won. Workers call Slots.Enter and Slots.Leave. Yield gives back what a row takes from
// others, Release ends the ownership.
package runqueue
