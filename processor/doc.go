// Package processor holds what a user of delaytask implements, passes in and reads, and both of its forms share: the
// [Processor] of a tag with its registration and middleware, the options of saves, changes and pops, tasks as they are
// stored, the errors, and the [Scheduler] that a program may be written against. It depends on the standard library
// alone, so that code which only describes work need not import a scheduler or a database.
package processor
