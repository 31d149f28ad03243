// Package sabotage removes, one at a time, the checks that keep the promises, so that tests can see their judges fail:
// a judge that never failed proves nothing. Without the build tag "sabotage" all checks stand and asking costs nothing.
// With it the environment variable DELAYTASK_SABOTAGE names the one that is removed.
package sabotage

// Check is one of the checks that keep the promises.
type Check string

const (
	Fence  Check = "fence"  // a result is stored only at the version that its executor has claimed
	Guard  Check = "guard"  // a claim takes only rows that are pending at the version that was seen
	Rescue Check = "rescue" // leases that are over are ended
	Early  Check = "early"  // a task that was claimed ahead of its time waits for it
)

// Checks are all of them.
var Checks = []Check{Fence, Guard, Rescue, Early}
