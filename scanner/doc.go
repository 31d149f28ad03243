// Package scanner holds the passes that run at intervals, so that no task depends on the memory of a process:
//
//   - [Compensate] finds pending tasks that are overdue because their timer was lost.
//   - [Rescue] ends the leases of executors that are gone.
//   - [Purge] deletes finished tasks whose retention is over.
//
// [Runner] runs them, each in a random phase of its interval, so that many nodes do not scan at one moment. All passes
// may run on all nodes at once: of two nodes that find the same row, the table's guards let one win.
//
// It is for delaytask itself: an application that calls Scheduler.Start has all passes running, with the retention of
// its Config.
//
// The passes know no database and no engine. Functions and interfaces in their fields read and write rows.
package scanner
