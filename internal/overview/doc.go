// Package overview reads what an operator wants to know first: what is late, what fails, who is silent, and how every
// tag stands. One [Reader] of a process reads for all viewers, at most every 5 s and only when it is asked. What it
// has read is a [Snapshot]. [Reading.Overview] makes of it what one viewer may see.
//
// Every statement enters by an index in that index's own order, and its cost follows a bound and not the table. At most
// two run at once, for 2 s each. A part that fails is missing, and the others come.
package overview
