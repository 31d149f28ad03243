// Package scheduler saves and runs tasks on the program's own database. Make a [Scheduler] with [Open], or with [New]
// on a pool that the program has already. Package delaytask says what a task may rely on.
package scheduler
