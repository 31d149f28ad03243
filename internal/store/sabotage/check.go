// Package sabotage removes one of the checks that keep the promises, so that tests see their judges fail. A judge that
// has never failed proves nothing. Without the build tag "sabotage" all checks stand, and Off costs nothing. With it,
// the environment variable DELAYTASK_SABOTAGE names the check that is removed.
package sabotage

// Check is one of the checks that keep the promises.
type Check string

const (
	Fence  Check = "fence"  // a result is stored only at the version that its executor has claimed
	Guard  Check = "guard"  // a claim takes only rows that are pending at the version that was seen
	Rescue Check = "rescue" // expired leases are ended
	Early  Check = "early"  // a task that was claimed ahead waits for its due time

	Decide  Check = "decide"  // a decision applies only at the version of the schedule that it was made for
	Alone   Check = "alone"   // the runs of a serial schedule share a key
	Replace Check = "replace" // a run waits for the lease of the run that it replaces
	Overlap Check = "overlap" // ticks that fell due while runs were open are overlapped, not missed
)

// Checks lists all checks.
var Checks = []Check{Fence, Guard, Rescue, Early, Decide, Alone, Replace, Overlap}
