// Package processor holds the types that the library and the client of the service share. These are the [Processor] of
// a tag with its registration and middleware, the options of saves, changes and pops, stored tasks, and errors.
// [Scheduler] is the interface of both. It imports the standard library alone, so code that only describes work needs
// neither a scheduler nor a database.
package processor
