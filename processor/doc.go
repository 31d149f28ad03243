// Package processor has what a program writes to run tasks.
//
// Begin with [NewKind], which ties a tag to the type of its body: its Process registers a function, its Save stores a
// task. A [Processor] is the same without a type, and [Func] makes one of a function. What the function returns decides
// what becomes of the task: nil, an error, or the error of [Permanent], [RetryAfter], [Snooze] or [HandOver].
// [CompleteTx] completes the task in the transaction that does its work.
//
// A [RegisterOption] bounds a tag: [Concurrency], [Timeout], [MaxAttempts], [RetryBackoff], [TTR]. A [Middleware]
// stands around processors: [Logging], [Recovery], [Tracing], or one of the program's own.
//
// [Scheduler] is the interface of the library and of the client of the service. The smaller interfaces in it, such as
// [Saver] and [Popper], are for functions that need a part of it.
package processor
