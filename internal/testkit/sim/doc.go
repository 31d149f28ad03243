// Package sim runs whole clusters of the real engine in one bubble of testing/synctest, over one table in memory, and
// makes their lives hard. Each node reaches the table over a line of its own, which delays, loses and repeats calls, is
// cut and held; nodes crash, stop and come back; the database goes away, holds locks, and fails over to a server with
// another clock. Minutes pass in milliseconds. What happened is a journal, and package judge says from it whether the
// promises held. Package history records every node's calls in it, and package linear says whether some order of them
// explains what the nodes were told.
//
// A seed fixes the workload, the faults, the delays, the clocks and the moments of crashes: each decision is a function
// of the seed, what it is about, and a number, and no two goroutines draw from one generator. Go does not fix in which
// order goroutines run, so a seed that failed may pass the next time; the journal of the failure is what stays.
//
// A run has two phases. While the faults last, anything may happen. Then everything is repaired, and whatever is due
// has to be done within its bounds.
package sim
