// Package overview reads what an operator wants to know first: what is late, what fails, who is silent, and how every
// tag stands. One [Reader] of a process reads for all viewers, at most every 5 s and only when it is asked. What it
// has read is a [Snapshot]. [Reading.Overview] makes of it what one viewer may see.
//
// Every statement enters by an index in that index's own order. Its cost does not follow the table: it follows a bound,
// or the tasks that execute. At most two run at once, for 1.5 s each. A part that fails is missing, and the others
// come.
package overview
