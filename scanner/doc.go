// Package scanner holds the passes that run by the clock and not by a timer, so that no task depends on anybody's
// memory:
//
//   - [Compensate] finds pending tasks that are overdue because their timer was lost.
//   - [Rescue] ends the leases of executors that are gone.
//   - [Purge] deletes finished tasks whose retention is over.
//
// [Runner] runs them, each in a random phase of its interval, so that many nodes do not scan at one moment. Everything
// here may run on all nodes at once: what two nodes find, the guards of the table give to one.
//
// It is for delaytask itself: an application that calls Scheduler.Start has all passes running, with the retention of
// its Config.
//
// The passes know no database and no engine; whoever builds them says where rows come from and where they go.
package scanner
