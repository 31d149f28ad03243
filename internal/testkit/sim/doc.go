// Package sim runs whole clusters of the real engine under faults, in one bubble of testing/synctest, over one table in
// memory. Each node reaches the table over a link of its own, which delays, loses and repeats calls, is cut and held.
// Nodes crash, stop and come back. The database goes away, locks rows, and fails over to a server with another clock.
// The clocks of processes and database are slewed. Minutes pass in milliseconds. Package history records every node's
// calls in a journal. Packages judge and linear decide from it whether the invariants held.
//
// A seed fixes the workload, the faults, the delays, the clocks and the moments of crashes: each decision is a function
// of the seed, of what it is about, and of a number. No two goroutines draw from one generator. Go does not fix the
// order of goroutines, so a seed that failed may pass the next time. The journal of the failure stays.
//
// A run has two phases. While the faults last, anything may happen. Then everything is repaired, and all that is due
// has to be done within its bounds.
package sim
