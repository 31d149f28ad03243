// Package processor holds what runs tasks: the [Processor] of a tag, with its registration and middleware, and the
// [Kind] of a task, which ties a tag to the type of its body. [Scheduler] is the interface of the library and of the
// client of the service.
package processor
