// Package processor holds what a user of delaytask implements and passes in: the [Processor] of a tag with its registration and
// middleware, the options of a save, and the errors. It depends on the standard library alone, so that code which only describes
// work need not import a scheduler or a database.
package processor
