// Package processor holds the types that the library and the client of the service share: the [Processor] of a tag with
// its registration and middleware, the options of saves, changes and pops, tasks as they are stored, the errors, and
// the [Scheduler] that a program may be written against. It imports the standard library alone, so code that only
// describes work needs neither a scheduler nor a database.
package processor
